"""Fill sphinx-gallery's cache before sphinx-gallery looks at it: what a build calls.

On ``builder-inited``, just before sphinx-gallery's own handler, every example whose outputs are out of date is run, and its
outputs are published to the cache. sphinx-gallery then runs nothing, and assembles the gallery's indexes. If it finds an
example that is not current, somebody has saved the script in the meantime. Then the build is refused: sphinx-gallery would run
the script in the process of the build.

Sphinx decides by time whether a page is current, so a page that was half written when the build was killed would stay. And it
warns of a page only when it reads or writes it, so a second build would be silent, and end well. So a file, the mark, lies
beside the doctrees while a build writes: one that finds it starts from the sources. The doctrees of pages with a warning are
removed at the end, and so the next build reads these pages again. Two builds at a time wait for each other.
"""

from __future__ import annotations

import fcntl
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.config import Config
from sphinx.util.logging import NAMESPACE, WarningStreamHandler, getLogger

from atlas.page_store import connect_for_pages
from atlas.toolbox import Refusal

from . import cache, process, recordings, scripts, sphinx_gallery_patches
from .process import LIMITS, Job, Limits
from .recordings import Recording
from .requests import has_request, hide_requests
from .scripts import Fault, Page, ScriptError

logger = getLogger(__name__)
Keys = dict[Page, dict[str, str]]  # what the outputs of pages depend on


def fill_cache(app: Sphinx) -> None:
    """Run the examples that are out of date. Connected to ``builder-inited``, before sphinx-gallery.

    :raises Refusal: if there are scripts that no page can be made of; if one was saved while it was being published; or if
        this is to be a release, and a recording is missing or out of date.
    """
    settings = app.config.sphinx_gallery_conf
    examples = Path(app.srcdir, settings["examples_dirs"]).resolve()
    made, work = Path(app.srcdir, settings["gallery_dirs"]), Path(app.doctreedir).parent / "running"
    try:
        scripts.check_scripts(examples)
        pages = scripts.find_pages(examples, made)
        for name in cache.remove_gone_pages(made, pages):
            logger.info("examples: removed the outputs of %s, which is gone", name)
        recorded = {page: recordings.read_recording(page) for page in pages if recordings.needs_gpu(page.script)}
        replayed = {} if recorded and process.find_gpu() else recorded
        stale = find_stale_pages(pages, replayed, settings)
        if only := app.config.atlas_only:  # sphinx-gallery shows the code of the others
            if only not in {page.name for page in pages}:
                raise Refusal(f"there is no examples/{only}.py, of which alone a page was to be made")
            stale = {page: key for page, key in stale.items() if page.name == only}
            settings["filename_pattern"] = rf"/{re.escape(only)}\.py$"
        app.config.atlas_faults = run_pages(stale, replayed, settings, work, app.config.atlas_jobs)
    except ScriptError as error:
        raise Refusal(str(error)) from None
    missing = [f"{page.name}: {found.fault}" for page, found in recorded.items() if found.fault]
    for line in missing:
        logger.info("examples: no recording fits %s", line)
    if missing and app.config.atlas_release:
        lines = "\n  ".join(
            ["a release needs every recording; run 'nox -s record' on a machine with a GPU:", *missing]
        )
        raise Refusal(lines)
    if not only:
        said = "was saved while the site was being built; build it again"
        sphinx_gallery_patches.refuse_to_run(lambda script: f"{Path(script).relative_to(examples.parent)} {said}")
    failed = len(app.config.atlas_faults)
    logger.info("examples: %d run, %d current, %d failed", len(stale), len(pages) - len(stale), failed)


def find_stale_pages(pages: Sequence[Page], replayed: Mapping[Page, Recording], settings: Mapping[str, Any]) -> Keys:
    """The pages whose outputs cannot be used, each with what its outputs depend on now.

    :param replayed: recordings to show instead of running the half of a page that needs a GPU.
    """
    fingerprint = cache.compute_fingerprint(settings)
    found = {page: replayed[page].identify() if page in replayed else "" for page in pages}
    keys = {page: cache.compute_key(page, fingerprint, recording) for page, recording in found.items()}
    return {page: key for page, key in keys.items() if not cache.is_current(page, key)}


def run_pages(
    stale: Keys, replayed: Mapping[Page, Recording], settings: dict[str, Any], work: Path, at_once: int = 0
) -> list[Fault]:
    """Run the examples of ``stale``, and publish their outputs. Return what failed.

    :param at_once: how many may run beside each other; 0 for as many as there are cores.
    :raises ScriptError: if the script of a recording was saved in the meantime.
    """
    jobs = {make_job(page, work, on_paper=page in replayed): page for page in stale}
    faults: list[Fault] = []
    for done, outcome in enumerate(process.run_jobs(list(jobs), settings, at_once=at_once), 1):
        page, said = jobs[outcome.job], "FAILED"
        if outcome.fault is None:
            if page in replayed:
                recordings.replay_recording(page, replayed[page], outcome.job.made)
            cache.publish_page(page, outcome.job.made, stale[page])
            said = f"{outcome.facts['seconds']:.1f} s"
        else:
            faults.append(outcome.fault)
            logger.error("%s", outcome.fault.make_report(), type="atlas", subtype="example")
            cache.publish_failure(page, outcome.fault)
            if not scripts.can_be_listed(page.script):
                cache.remove_page(page)
                settings["ignore_pattern"] += rf"|^{re.escape(page.script.name)}$"
        logger.info("examples: %d/%d %s %s", done, len(jobs), page.name, said)
        shutil.rmtree(outcome.job.root, ignore_errors=True)
    return faults


def make_job(page: Page, work: Path, limits: Limits = LIMITS, *, on_paper: bool = False) -> Job:
    """What it takes to run a page.

    :param limits: of a page that asks for no more time.
    :param on_paper: whether only the half runs that needs no GPU.
    """
    text = scripts.read_script(page.script)
    return Job(
        page.name,
        page.script,
        (work / page.name.replace("/", "--")).resolve(),
        replace(limits, seconds=max(limits.seconds, scripts.find_time_limit(text)[0])),
        alone=has_request("varies", scripts.split_at_mark(text)[0] if on_paper else text),
        end=scripts.find_marks(text)[0] if on_paper else None,
    )


def report_faults(app: Sphinx, exception: Exception | None) -> None:
    """End a build with failed examples as a failure, with all of them in one list. Connected to ``build-finished``, late."""
    faults = app.config.atlas_faults
    if faults:
        lines = "".join(f"\n  {fault.make_headline()}" for fault in faults)
        logger.error("%d of the examples failed:%s", len(faults), lines, type="atlas", subtype="example")
        app.statuscode = 1


# -- One build and the next --------------------------------------------------------------------------------


def begin_build(app: Sphinx, config: Config) -> None:
    """Wait for other builds. After a killed one, have Sphinx read all again. Connected to ``config-inited``, first.

    :raises Refusal: if nothing can be written here.
    """
    try:
        app.atlas_lock = _take_lock(Path(app.doctreedir).parent)  # until this process ends
        mark = _find_mark(app)
        if mark.exists():
            logger.info("the last build was broken off: starting from the sources")
            _forget_all(app)
        mark.touch()
    except OSError as error:
        raise Refusal(f"nothing can be written here; build in a checkout that is yours: {error}") from None
    app.atlas_warned = set()

    def note_place(record: logging.LogRecord) -> bool:
        if getattr(record, "type", None) != "atlas":  # a failed example runs again, and its error is logged again
            app.atlas_warned.add(getattr(record, "location", None) or "")
        return True

    for handler in logging.getLogger(NAMESPACE).handlers:
        if isinstance(handler, WarningStreamHandler):
            handler.addFilter(note_place)  # Sphinx's own filters, before it, have made a text of each location


def end_build(app: Sphinx, exception: Exception | None) -> None:
    """Take the mark away, if all went well, and have pages with warnings read again. Connected to ``build-finished``, last."""
    if exception:  # as of a full disk: the next build trusts no file that was cut off
        return
    _find_mark(app).unlink(missing_ok=True)
    for location in app.atlas_warned:
        page = app.env.path2doc(location.partition(":")[0])
        if page not in app.env.found_docs:
            _forget_all(app)
        Path(app.doctreedir, f"{page}.doctree").unlink(missing_ok=True)


def _find_mark(app: Sphinx) -> Path:
    return Path(app.doctreedir).parent / f".unfinished-{Path(app.outdir).name}"


def _forget_all(app: Sphinx) -> None:
    Path(app.doctreedir, ENV_PICKLE_FILENAME).unlink(missing_ok=True)
    Path(app.outdir, ".buildinfo").unlink(missing_ok=True)  # one that is half written would be a warning


def _take_lock(folder: Path) -> TextIO:
    """Wait until no other process builds in ``folder``; none will until the file returned is closed or this process ends.

    The lock belongs to this process alone: nothing that was forked from it, and outlives it, keeps the next build waiting.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / ".lock").open("w", encoding="utf-8")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock(), which a forked process would share
    except (BlockingIOError, PermissionError):
        logger.info("another build of this checkout is running (nox -s serve?): waiting until it has ended")
        fcntl.lockf(file, fcntl.LOCK_EX)
    return file


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx_gallery.gen_gallery")
    app.add_config_value("atlas_release", False, "", [bool, str])
    app.add_config_value("atlas_only", "", "", [str])
    app.add_config_value("atlas_jobs", 0, "", [int])
    app.add_config_value("atlas_faults", [], "")
    app.connect("config-inited", begin_build, priority=1)
    app.connect("builder-inited", fill_cache, priority=499)
    connect_for_pages(app, "doctree-read", hide_requests)
    app.connect("build-finished", report_faults, priority=900)
    app.connect("build-finished", end_build, priority=999)
