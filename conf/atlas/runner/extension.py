"""Fill sphinx-gallery's cache before sphinx-gallery looks at it.

On ``builder-inited``, just before sphinx-gallery's own handler, every example whose outputs are out of date is run and its
outputs are published to the cache. sphinx-gallery then runs nothing, and assembles the gallery's indexes.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.console import colorize, term_width_line

from . import cache, fingerprint, gallery, gpu, pool, recordings, unfinished
from .cache import Page
from .child import Limits, Workplace
from .faults import Fault
from .recordings import Recording

logger = logging.getLogger(__name__)

_VARIES = re.compile(r"^# ?varies:", re.MULTILINE)


def fill_cache(app: Sphinx) -> None:
    """Run the examples that are out of date. Connected to ``builder-inited``, before sphinx-gallery."""
    settings = app.config.sphinx_gallery_conf
    if not settings["plot_gallery"]:
        return
    pages = find_pages(app)
    root = cache_root(app)
    for name in cache.remove_all_but(root, pages) if root.is_dir() else []:
        logger.info("examples: removed the outputs of %s, which is gone", name)
    has_gpu = _has_gpu(pages)
    recorded = {} if has_gpu else {page: recordings.look(page) for page in pages if _needs_gpu(page)}
    wanted = {page: fingerprint.of(page.script, _recording(recorded.get(page))) for page in pages}
    reasons = {page: cache.stale(page, now) for page, now in wanted.items()}
    stale = [page for page in pages if reasons[page]]
    if app.config.atlas_why:
        for page in pages:
            logger.info("examples: %s: %s", page.name, "; ".join(reasons[page]) or "current")
    failed = _run(app, stale, wanted, settings, recorded) if stale else []
    _tell_missing(app, recorded)
    app.config.atlas_faults = failed
    # sphinx-gallery runs nothing after this; without these it need not import what they need either
    settings["reset_modules"] = ()
    logger.info("examples: %d run, %d current, %d failed", len(stale), len(pages) - len(stale), len(failed))


def find_pages(app: Sphinx) -> list[Page]:
    """The examples of all chapters: the folders with a header, as sphinx-gallery has it."""
    settings = app.config.sphinx_gallery_conf
    examples = (Path(app.srcdir) / settings["examples_dirs"]).resolve()
    chapters = sorted(header.parent for header in examples.glob("*/GALLERY_HEADER.rst"))
    return [
        Page(script, cache_root(app) / folder.name) for folder in chapters for script in sorted(folder.glob("*.py"))
    ]


def cache_root(app: Sphinx) -> Path:
    return Path(app.srcdir) / app.config.sphinx_gallery_conf["gallery_dirs"]


def _needs_gpu(page: Page) -> bool:
    return page.script.parent.name == recordings.CHAPTER


def _has_gpu(pages: Sequence[Page]) -> bool:
    return any(_needs_gpu(page) for page in pages) and bool(gpu.describe())


def _recording(recording: Recording | None) -> fingerprint.Fingerprint:
    """What a replayed page depends on besides its script; a page without outputs is made here, like any other."""
    if recording is None:
        return {}
    if recording.fault:
        return {"the recording": recording.fault, **fingerprint.shared()}
    return {"the recording": cache.sha256(recording.folder / recordings.MANIFEST)}


def _tell_missing(app: Sphinx, recorded: Mapping[Page, Recording]) -> None:
    """Say which pages have no outputs; a release is refused."""
    missing = [f"{page.name}: {recording.fault}" for page, recording in recorded.items() if recording.fault]
    for line in missing:
        logger.info("examples: no outputs for %s", line)
    if missing and app.config.atlas_release:
        lines = "\n".join(f"  {line}" for line in missing)
        raise ExtensionError(
            f"a release needs every recording; run 'nox -s record' on a machine with a GPU:\n{lines}"
        )


def _run(
    app: Sphinx,
    stale: Sequence[Page],
    wanted: Mapping[Page, fingerprint.Fingerprint],
    settings: dict[str, Any],
    recorded: Mapping[Page, Recording],
) -> list[Fault]:
    jobs = {}
    for page in stale:
        job = _job(app, page, execute=page not in recorded)
        if page in recorded and not recorded[page].fault:
            recordings.replay(page, recorded[page], job.place.made)
            cache.publish(page, job.place.made, wanted[page])
            shutil.rmtree(job.place.root)
        else:
            jobs[job] = page
    faults: list[Fault] = []
    progress = _Progress(len(jobs))
    for outcome in pool.run(list(jobs), settings, at_once=app.config.atlas_jobs or None, watch=progress.show):
        page = jobs[outcome.job]
        if outcome.fault is None:
            if page in recorded:
                recordings.without_outputs(page, outcome.job.place.made, recorded[page].fault)
            cache.publish(page, outcome.job.place.made, wanted[page], **outcome.facts)
            progress.say(f"{page.name} {outcome.facts['seconds']:.1f} s")
        else:
            faults.append(outcome.fault)
            progress.say(f"{page.name} FAILED")
            logger.error("%s", outcome.fault.report(), type="atlas", subtype="example")
            _replace_failed(page, outcome.fault, settings)
        shutil.rmtree(outcome.job.place.root, ignore_errors=True)
    return faults


def _job(app: Sphinx, page: Page, *, execute: bool) -> pool.Job:
    root = Path(app.doctreedir).parent / "running" / page.name.replace("/", "--")
    seconds = gallery.option(page.script, "time_limit")
    limits = Limits(seconds=float(seconds)) if seconds else Limits()
    return pool.Job(
        page.name,
        page.script,
        Workplace(root.resolve(), page.script.parent.name, page.script.name, cache_root(app).name),
        limits,
        alone=bool(_VARIES.search(page.script.read_text(encoding="utf-8", errors="replace"))),
        expected_seconds=float(cache.read_receipt(page).get("seconds", "inf")),
        execute=execute,
    )


def _replace_failed(page: Page, fault: Fault, settings: dict[str, Any]) -> None:
    """No page pretends: the old outputs go. A script that sphinx-gallery could not even list is kept from it."""
    try:
        cache.publish_failure(page, fault)
    except Exception:
        cache.remove(page)
        settings["ignore_pattern"] += "|" + re.escape(str(page.script))


def report(app: Sphinx, exception: Exception | None) -> None:
    """End a build with failed examples as a failure, with all of them in one list. Connected to ``build-finished``, late.

    Sphinx would drown an exception in its own traceback and versions; an exit status and a list say all there is to say.
    """
    faults = app.config.atlas_faults
    if faults:
        lines = "\n".join(f"  {fault.headline()}" for fault in faults)
        logger.error("%d of the examples failed:\n%s", len(faults), lines, type="atlas", subtype="example")
        app.statuscode = 1


class _Progress:
    """One line that tells what is running; where there is no terminal, one line for each example that ended."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.on_terminal = sys.stdout.isatty()

    def show(self, done: int, running: Sequence[str]) -> None:
        self.done = done
        if self.on_terminal and running:
            line = f"examples: {done}/{self.total} done, {self._seconds()}, running {', '.join(running)}"
            logger.info(term_width_line(colorize("bold", line)), nonl=True)

    def say(self, what: str) -> None:
        logger.info("examples: %d/%d %s", self.done, self.total, what)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self.started:.0f} s"


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx_gallery.gen_gallery")
    app.add_config_value("atlas_why", False, "", [bool, str])
    app.add_config_value("atlas_release", False, "", [bool, str])
    app.add_config_value("atlas_jobs", 0, "", [int])
    app.add_config_value("atlas_faults", [], "")
    app.connect("builder-inited", fill_cache, priority=499)
    app.connect("build-finished", report, priority=900)
    unfinished.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
