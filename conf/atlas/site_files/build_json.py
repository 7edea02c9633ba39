"""Say of a build what it was made from, in ``build.json``; ``page_parts.foot.built_line`` says it at the end of each page.

A build is published when the setting ``atlas_commit`` names its commit.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

from atlas.directives.claims import claims
from atlas.directives.recorded import provenance
from atlas.toolbox import Refusal, write_whole

from .date_of_sources import date_of

FILE = "build.json"
_COUNT = "atlas-checks"
_GAP = "atlas-not-recorded"
_SITE = re.compile(r"https?://[^\s/?#]+/([^\s?#]+/)?")


def facts(env: BuildEnvironment, commit: str) -> dict[str, Any]:
    """``commit`` (None unless published) and ``date`` of the sources, ``torch``, how many ``pages`` and ``checks`` there are,
    and the pages that are ``not_recorded``, for which the workflow ``publish`` refuses the site.
    """
    return {
        "commit": commit or None,
        "date": date_of(Path(env.srcdir).parent),
        "torch": torch_version(),
        "pages": len(env.found_docs),
        "checks": sum(checks_of(env, page) for page in env.found_docs),
        "not_recorded": sorted(page for page in env.found_docs if env.metadata[page].get(_GAP)),
    }


def torch_version() -> str:
    """Of the PyTorch that the build ran on, without what it was compiled for."""
    return version("torch").partition("+")[0]


def checks_of(env: BuildEnvironment, page: str) -> int:
    """How many asserts of a page passed."""
    return env.metadata[page].get(_COUNT, 0)


def check(app: Sphinx, config: Config) -> None:
    """Connected to ``config-inited``.

    :raises Refusal: if a host's setting is wrong: the address of the site, to which the names of pages are appended, or the
        commit that it is built from.
    """
    if not _SITE.fullmatch(config.html_baseurl):
        raise Refusal(
            f"ATLAS_SITE is {config.html_baseurl!r}, which is no address with a slash at its end, "
            "such as https://owner.example/some-fork/"
        )
    if config.atlas_commit and not re.fullmatch(r"[0-9a-f]{7,64}", config.atlas_commit):
        raise Refusal(
            f"ATLAS_COMMIT is {config.atlas_commit!r}, which is no hash of a commit; leave it empty where nothing is published"
        )


def count(app: Sphinx, document: nodes.document) -> None:
    """Keep with each page how many of its asserts passed, and whether it lacks outputs. Connected to ``doctree-read``."""
    found = sum(node["count"] for node in document.findall(claims))
    if found:
        app.env.metadata[app.env.docname][_COUNT] = found
    if any("not-recorded" in node["classes"] for node in document.findall(provenance)):
        app.env.metadata[app.env.docname][_GAP] = True


def of_build(app: Sphinx) -> dict[str, Any]:
    """The facts of this build, found once for all its pages."""
    if not hasattr(app, "_atlas_facts"):
        app._atlas_facts = facts(app.env, app.config.atlas_commit)
    return app._atlas_facts


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``."""
    if exception is None and app.builder.name == "html":
        text = json.dumps(of_build(app), indent=1) + "\n"
        write_whole(Path(app.outdir) / FILE, text)


def setup(app: Sphinx) -> None:
    app.add_config_value("atlas_commit", "", "html", [str])
    app.connect("config-inited", check)
    app.connect("doctree-read", count)
    app.connect("build-finished", write)
