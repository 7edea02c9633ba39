"""Fill sphinx-gallery's cache before sphinx-gallery looks at it.

On ``builder-inited``, just before sphinx-gallery's own handler, every example whose outputs are out of date is run and its
outputs are published to the cache. sphinx-gallery then runs nothing, and assembles the gallery's indexes. If it finds an
example that is not current all the same, somebody has saved the script in the meantime. Then the build is refused:
sphinx-gallery would run the script in the process of the build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.toolbox import Refusal

from . import fill, sphinx_gallery_api
from .model import Site
from .scripts import ScriptError, saved_meanwhile

logger = logging.getLogger(__name__)


def fill_cache(app: Sphinx) -> None:
    """Run the examples that are out of date. Connected to ``builder-inited``, before sphinx-gallery.

    :raises Refusal: if there are scripts that no page can be made of; if one was saved while it was being published; or if
        this is to be a release, and a recording is missing or out of date.
    """
    settings = app.config.sphinx_gallery_conf
    if not settings["plot_gallery"]:
        return
    site = Site(Path(app.srcdir), Path(app.doctreedir).parent / "running", settings)
    try:
        state = fill.look(site)
        if app.config.atlas_why:
            for page, reasons in state.reasons.items():
                logger.info("examples: %s: %s", page.name, "; ".join(reasons) or "current")
        stale = state.stale
        failed = fill.run(site, state, stale, at_once=app.config.atlas_jobs) if stale else []
    except ScriptError as error:
        raise Refusal(str(error)) from None
    _tell_missing(app, state.missing)
    app.config.atlas_faults = failed
    sphinx_gallery_api.parse_docstrings_only()
    settings["reset_modules"] = (f"{__name__}.{refuse_to_run.__name__}",)
    current = len(state.wanted) - len(stale)
    logger.info("examples: %d run, %d current, %d failed", len(stale), current, len(failed))


def refuse_to_run(settings: dict[str, Any], name: str) -> None:
    """End the build instead of running the example ``name``. One of sphinx-gallery's ``reset_modules``, once the cache is full.

    :raises Refusal: always.
    """
    site = Site(Path(settings["src_dir"]), Path(), settings)
    found = " or ".join(f"examples/{page.name}.py" for page in site.pages() if page.script.name == name)
    raise Refusal(saved_meanwhile(found or name))


def _tell_missing(app: Sphinx, missing: list[str]) -> None:
    """Say which pages no recording fits; a release is refused."""
    for line in missing:
        logger.info("examples: no recording fits %s", line)
    if missing and app.config.atlas_release:
        lines = "\n".join(f"  {line}" for line in missing)
        raise Refusal(f"a release needs every recording; run 'nox -s record' on a machine with a GPU:\n{lines}")


def report(app: Sphinx, exception: Exception | None) -> None:
    """End a build with failed examples as a failure, with all of them in one list. Connected to ``build-finished``, late.

    Sphinx would drown an exception in its own traceback and versions; an exit status and a list say all there is to say.
    """
    faults = app.config.atlas_faults
    if faults:
        lines = "\n".join(f"  {fault.headline()}" for fault in faults)
        logger.error("%d of the examples failed:\n%s", len(faults), lines, type="atlas", subtype="example")
        app.statuscode = 1


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx_gallery.gen_gallery")
    app.add_config_value("atlas_why", False, "", [bool, str])
    app.add_config_value("atlas_release", False, "", [bool, str])
    app.add_config_value("atlas_jobs", 0, "", [int])
    app.add_config_value("atlas_faults", [], "")
    app.connect("builder-inited", fill_cache, priority=499)
    app.connect("build-finished", report, priority=900)
