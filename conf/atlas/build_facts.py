"""What a build was made from: its PyTorch, the date of its sources, its asserts, and the commit of one that is published.

`footer` says it at the end of each page, and `site_files` writes it to ``build.json`` for programs. A build is published when
the setting ``atlas_commit`` names its commit.

The date is never the clock's, for two builds of the same sources must be the same. It is that of ``SOURCE_DATE_EPOCH``
(https://reproducible-builds.org/specs/source-date-epoch/), or else of the commit, if nothing has been changed since. Sources
that are no commit have no date.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Sphinx is imported where it is needed: noxfile.py asks for the date before it starts Sphinx
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: What a site is made from, in the repository.
SOURCES = ("conf", "docs", "examples", "requirements.txt")
_COUNT = "atlas-checks"
_GAP = "atlas-not-recorded"
_HISTORY = ("log", "--format=%x00%ct", "--name-only", "--no-renames", "--", "docs", "examples")

# -- Facts ----------------------------------------------------------------------------------------


def keep_checks(app: Sphinx, document: nodes.document) -> None:
    """Keep with each page how many of its asserts passed, and whether it lacks outputs. Connected to ``doctree-read``."""
    if found := sum(node["count"] for node in _find_by_class(document, "claims")):
        app.env.metadata[app.env.docname][_COUNT] = found
    if any(_find_by_class(document, "not-recorded")):
        app.env.metadata[app.env.docname][_GAP] = True


def _find_by_class(document: nodes.document, name: str) -> Iterator[nodes.Element]:
    return document.findall(lambda node: name in getattr(node, "attributes", {}).get("classes", ()))


def count_checks(env: BuildEnvironment, page: str) -> int:
    """How many asserts of a page passed."""
    return env.metadata[page].get(_COUNT, 0)


def get_torch_version() -> str:
    """Of the PyTorch that the build ran on, without what it was compiled for."""
    return version("torch").partition("+")[0]


def collect_facts(app: Sphinx, env: BuildEnvironment) -> None:
    """Collect the facts of this build once for all its pages. Connected to ``env-updated``: all pages have been read.

    ``app.atlas_changes`` is the day on which each file was last changed, if git knows it. ``app.atlas_facts`` has ``commit``
    (None unless published) and ``date`` of the sources, ``torch``, how many ``pages`` and ``checks`` there are, and the pages
    that are ``not_recorded``, for which the workflow ``publish`` refuses the site.
    """
    app.atlas_changes = find_changes(Path(env.srcdir).parent)
    app.atlas_facts = {
        "commit": app.config.atlas_commit or None,
        "date": find_date(Path(env.srcdir).parent),
        "torch": get_torch_version(),
        "pages": len(env.found_docs),
        "checks": sum(count_checks(env, page) for page in env.found_docs),
        "not_recorded": sorted(page for page in env.found_docs if env.metadata[page].get(_GAP)),
    }


# -- The date of the sources ----------------------------------------------------------------------


def find_date(root: Path) -> str | None:
    """The day, in UTC, of the sources in ``root``; None where it is not known."""
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = int(said) if said else _read_commit_time(root)
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()


def find_changes(root: Path) -> dict[str, str]:
    """The day of the commit that last changed each page's source. Empty where the history is not whole, or files are edited."""
    if _read_commit_time(root) is None or _ask_git(root, "rev-parse", "--is-shallow-repository") != "false":
        return {}
    changes: dict[str, str] = {}
    for commit in (_ask_git(root, *_HISTORY) or "").split("\0")[1:]:
        seconds, _, files = commit.partition("\n")
        day = datetime.fromtimestamp(int(seconds), UTC).date().isoformat()
        changes = dict.fromkeys(files.split("\n"), day) | changes  # the newest is first, and stays
    return changes


def _read_commit_time(root: Path) -> int | None:
    """The seconds of the commit that is checked out in ``root``: of that folder alone, not of a repository around it."""
    top = _ask_git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve() or _ask_git(root, "status", "--porcelain", "--", *SOURCES):
        return None
    seconds = _ask_git(root, "log", "-1", "--format=%ct")
    return int(seconds) if seconds else None


def _ask_git(root: Path, *command: str) -> str | None:
    """What git says; None if it is not installed, or fails.

    git reads nothing of a checkout that belongs to another user, such as a folder that is mounted into a container.
    """
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # builds in one checkout may ask at once
    try:
        done = subprocess.run(["git", *command], cwd=root, env=environment, capture_output=True, text=True)
    except OSError:
        return None
    if "dubious ownership" in done.stderr:
        from sphinx.util import logging

        way_out = f"trust it with: git config --global --add safe.directory {root.resolve()}"
        said = f"the pages have no date: git does not read {root}, which belongs to another user; {way_out}"
        logging.getLogger(__name__).warning(said, type="atlas", subtype="date", once=True)
    return done.stdout.strip() if done.returncode == 0 else None


def setup(app: Sphinx) -> None:
    from atlas.page_store import connect_for_pages

    app.add_config_value("atlas_commit", "", "html", [str])
    connect_for_pages(app, "doctree-read", keep_checks)
    app.connect("env-updated", collect_facts)
