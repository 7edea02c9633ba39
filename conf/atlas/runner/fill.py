"""Bring sphinx-gallery's cache up to date: find the examples whose outputs are out of date, run them, publish what they made.

A build calls this just before sphinx-gallery looks at its cache; ``conf/shards.py`` calls it without a build.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sphinx.util import logging

from atlas.cells.request_comments import varies

from . import gpu, halves, scripts
from .model import Page, Site
from .outputs import cache, fingerprint, recordings
from .outputs.recordings import Recording
from .processes import limits, pool
from .processes.child import Workplace
from .processes.faults import Fault
from .processes.limits import Limits

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class State:
    """What is current in the cache, and what is not."""

    wanted: Mapping[Page, fingerprint.Fingerprint]
    """What the outputs of each page depend on now."""
    reasons: Mapping[Page, Sequence[str]]
    """Why each page's outputs cannot be used, for a person; nothing for those that can."""
    recorded: Mapping[Page, Recording]
    """The recordings of the pages that have a half which needs a GPU."""
    replayed: Mapping[Page, Recording]
    """Recordings to show instead of running that half. Empty on a machine with a GPU."""

    @property
    def stale(self) -> list[Page]:
        return [page for page, why in self.reasons.items() if why]

    @property
    def missing(self) -> list[str]:
        """The pages whose recording cannot be used, each with the reason."""
        return [f"{page.name}: {found.fault}" for page, found in self.recorded.items() if found.fault]


def look(site: Site) -> State:
    """Compare the cache with the examples as they are, and remove what examples left that are gone.

    :raises ScriptError: if there are scripts that no page can be made of.
    """
    scripts.check(site)
    pages = site.pages()
    for name in cache.remove_all_but(site.cache, pages) if site.cache.is_dir() else []:
        logger.info("examples: removed the outputs of %s, which is gone", name)
    need_gpu = [page for page in pages if recordings.needed(page.script)]
    has_gpu = bool(need_gpu and gpu.describe())
    recorded = {page: recordings.look(page) for page in need_gpu}
    replayed = {} if has_gpu else recorded
    shared = fingerprint.shared(site.settings)
    wanted = {
        page: fingerprint.of(page.script, replayed[page].depends_on(shared) if page in replayed else shared)
        for page in pages
    }
    return State(wanted, {page: cache.stale(page, now) for page, now in wanted.items()}, recorded, replayed)


def run(site: Site, state: State, pages: Sequence[Page], *, at_once: int = 0) -> list[Fault]:
    """Run the examples of ``pages``, and publish their outputs. Return what failed.

    Of a page in ``state.replayed``, only what needs no GPU is run, and the rest comes from its recording.

    :param at_once: how many may run beside each other; 0 for as many as there are cores.
    :raises ScriptError: if the script of a recording was saved since ``look``.
    """
    jobs = {_job(site, page, on_paper=page in state.replayed): page for page in pages}
    faults: list[Fault] = []
    progress = _Progress(len(jobs))
    for outcome in pool.run(list(jobs), site.settings, at_once=at_once or None, watch=progress.show):
        page = jobs[outcome.job]
        if outcome.fault is None:
            if page in state.replayed:
                recordings.replay(page, state.replayed[page], outcome.job.place.made)
            cache.publish(page, outcome.job.place.made, state.wanted[page], **outcome.facts)
            progress.say(f"{page.name} {outcome.facts['seconds']:.1f} s")
        else:
            faults.append(outcome.fault)
            progress.say(f"{page.name} FAILED")
            logger.error("%s", outcome.fault.report(), type="atlas", subtype="example")
            _replace_failed(page, outcome.fault, site.settings)
        shutil.rmtree(outcome.job.place.root, ignore_errors=True)
    return faults


def _job(site: Site, page: Page, *, on_paper: bool) -> pool.Job:
    script = page.script.read_text(encoding="utf-8", errors="replace")
    runs = halves.of_script(script)[0] if on_paper else script
    root = site.work / page.name.replace("/", "--")
    return pool.Job(
        page.name,
        page.script,
        Workplace(root.resolve(), page.script.parent.name, page.script.name, site.cache.name),
        limits.allowed(page.script, Limits()),
        alone=varies(runs),
        expected_seconds=last_seconds(page),
        end=halves.marks(script)[0] if on_paper else None,
    )


def last_seconds(page: Page) -> float:
    """How long the page's last run took; infinity if there was none."""
    return float(cache.read_receipt(page).get("seconds", "inf"))


def _replace_failed(page: Page, fault: Fault, settings: dict[str, Any]) -> None:
    """Remove the old outputs, and put a page in their place that says that the script failed.

    Of a script without a title, say, no such page can be made; sphinx-gallery could not list it either, so it is told to
    ignore the script.
    """
    try:
        cache.publish_failure(page, fault)
    except Exception:
        cache.remove(page)
        settings["ignore_pattern"] += "|" + re.escape(str(page.script))


class _Progress:
    """One line that says what is running, on a terminal; elsewhere a line for each example that has ended."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.on_terminal = sys.stdout.isatty()

    def show(self, done: int, running: Sequence[str]) -> None:
        self.done = done
        if self.on_terminal and running:
            line = f"examples: {done}/{self.total} done, {self._seconds()}, running {', '.join(running)}"
            width = shutil.get_terminal_size().columns - 1
            logger.info(f"{line:{width}.{width}}\r", nonl=True)

    def say(self, what: str) -> None:
        logger.info("examples: %d/%d %s", self.done, self.total, what)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self.started:.0f} s"
