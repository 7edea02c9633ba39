"""Fill sphinx-gallery's cache before sphinx-gallery looks at it: what a build calls.

On ``builder-inited``, just before sphinx-gallery's own handler, every example whose outputs are out of date is run, and its
outputs are published to the cache. sphinx-gallery then runs nothing, and assembles the gallery's indexes. If it finds an
example that is not current, somebody has saved the script in the meantime. Then the build is refused: sphinx-gallery would run
the script in the process of the build.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.page_store import connect_for_pages
from atlas.toolbox import Refusal

from . import build_guard, cache, process, recordings, scripts, sphinx_gallery_patches
from .child import Limits, Workplace
from .process import Job
from .recordings import Recording
from .requests import has_request, hide_requests
from .scripts import Fault, Page, ScriptError

logger = logging.getLogger(__name__)


def fill_cache(app: Sphinx) -> None:
    """Run the examples that are out of date. Connected to ``builder-inited``, before sphinx-gallery.

    :raises Refusal: if there are scripts that no page can be made of; if one was saved while it was being published; or if
        this is to be a release, and a recording is missing or out of date.
    """
    settings = app.config.sphinx_gallery_conf
    if not settings["plot_gallery"]:
        return
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
    _report_missing(app, [f"{page.name}: {found.fault}" for page, found in recorded.items() if found.fault])
    if not only:
        sphinx_gallery_patches.refuse_to_run(
            lambda script: (
                f"{Path(script).relative_to(examples.parent)} was saved while the site was being built; build it again"
            )
        )
    failed = len(app.config.atlas_faults)
    logger.info("examples: %d run, %d current, %d failed", len(stale), len(pages) - len(stale), failed)


def find_stale_pages(
    pages: Sequence[Page], replayed: Mapping[Page, Recording], settings: Mapping[str, Any]
) -> dict[Page, dict[str, str]]:
    """The pages whose outputs cannot be used, each with what its outputs depend on now.

    :param replayed: recordings to show instead of running the half of a page that needs a GPU.
    """
    fingerprint = cache.compute_fingerprint(settings)
    keys = {}
    for page in pages:
        recording = replayed[page].identify() if page in replayed else ""
        keys[page] = cache.compute_key(page, fingerprint, recording)
    return {page: key for page, key in keys.items() if cache.read_facts(page, key) is None}


def run_pages(
    stale: Mapping[Page, Mapping[str, str]],
    replayed: Mapping[Page, Recording],
    settings: dict[str, Any],
    work: Path,
    at_once: int = 0,
) -> list[Fault]:
    """Run the examples of ``stale``, and publish their outputs. Return what failed.

    :param at_once: how many may run beside each other; 0 for as many as there are cores.
    :raises ScriptError: if the script of a recording was saved in the meantime.
    """
    jobs = {make_job(page, work, on_paper=page in replayed): page for page in stale}
    faults: list[Fault] = []
    for done, outcome in enumerate(process.run_jobs(list(jobs), settings, at_once=at_once or None), 1):
        page, place = jobs[outcome.job], outcome.job.place
        said = f"{outcome.facts['seconds']:.1f} s" if outcome.fault is None else "FAILED"
        if outcome.fault is None:
            if page in replayed:
                recordings.replay_recording(page, replayed[page], place.made)
            cache.publish_page(page, place.made, stale[page], **outcome.facts)
        else:
            faults.append(outcome.fault)
            logger.error("%s", outcome.fault.make_report(), type="atlas", subtype="example")
            cache.publish_failure(page, outcome.fault)
            if not scripts.read_title(scripts.read_script(page.script)):  # sphinx-gallery could not list it
                cache.remove_page(page)
                settings["ignore_pattern"] += rf"|^{re.escape(page.script.name)}$"
        logger.info("examples: %d/%d %s %s", done, len(jobs), page.name, said)
        shutil.rmtree(place.root, ignore_errors=True)
    return faults


def make_job(page: Page, work: Path, limits: Limits | None = None, *, on_paper: bool = False) -> Job:
    """What it takes to run a page.

    :param limits: of a page that asks for no more time.
    :param on_paper: whether only the half runs that needs no GPU.
    """
    text = scripts.read_script(page.script)
    limits = limits or Limits()
    try:
        seconds = max(limits.seconds, scripts.read_time_limit(text))
    except ValueError:  # the run will say so
        seconds = limits.seconds
    return Job(
        page.name,
        page.script,
        Workplace.make_below((work / page.name.replace("/", "--")).resolve(), page.script),
        Limits(seconds, limits.output, limits.memory),
        alone=has_request("varies", scripts.split_script(text)[0] if on_paper else text),
        expected_seconds=cache.load_seconds(page),
        end=scripts.find_marks(text)[0] if on_paper else None,
    )


def _report_missing(app: Sphinx, missing: list[str]) -> None:
    """Say which pages no recording fits; a release is refused."""
    for line in missing:
        logger.info("examples: no recording fits %s", line)
    if missing and app.config.atlas_release:
        lines = "\n".join(f"  {line}" for line in missing)
        raise Refusal(f"a release needs every recording; run 'nox -s record' on a machine with a GPU:\n{lines}")


def report_faults(app: Sphinx, exception: Exception | None) -> None:
    """End a build with failed examples as a failure, with all of them in one list. Connected to ``build-finished``, late."""
    faults = app.config.atlas_faults
    if faults:
        lines = "\n".join(f"  {fault.make_headline()}" for fault in faults)
        logger.error("%d of the examples failed:\n%s", len(faults), lines, type="atlas", subtype="example")
        app.statuscode = 1


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx_gallery.gen_gallery")
    app.add_config_value("atlas_release", False, "", [bool, str])
    app.add_config_value("atlas_only", "", "", [str])
    app.add_config_value("atlas_jobs", 0, "", [int])
    app.add_config_value("atlas_faults", [], "")
    app.connect("config-inited", build_guard.begin_build, priority=1)
    app.connect("builder-inited", fill_cache, priority=499)
    connect_for_pages(app, "doctree-read", hide_requests)
    app.connect("build-finished", report_faults, priority=900)
    app.connect("build-finished", build_guard.end_build, priority=999)
