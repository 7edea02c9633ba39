"""Run examples in child processes: as many at once as there are cores, the longest first, each within its limits."""

from __future__ import annotations

import importlib
import json
import mmap
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atlas.runner import notebook

from . import child, ending
from .child import Workplace
from .cores import cores, waited_for_core
from .faults import Fault, cell_of
from .limits import Limits

_POLL = 0.02  # seconds
_GRACE = 2.0  # seconds that processes which an example started have to end after it
_MANY = 4  # examples from which on it pays to import, once for all, what only some of them need


@dataclass(frozen=True, slots=True)
class Job:
    """One example to run."""

    name: str
    script: Path
    place: Workplace
    limits: Limits
    alone: bool = False
    """Whether nothing else may run beside it: it measures time."""
    expected_seconds: float = float("inf")
    end: int | None = None
    """The line from which on the script must not run; None to run all of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: with the facts of its run, or with a fault."""

    job: Job
    facts: Mapping[str, Any] = field(default_factory=dict)
    fault: Fault | None = None


@dataclass(slots=True)
class _Running:
    job: Job
    pid: int
    line: mmap.mmap
    started: float
    reaped: bool = False
    """Whether the process has ended and was waited for: its number may belong to another process by now."""


def prepare_for_children(children: int) -> None:
    """Import the heavy modules before forking, so that children share them.

    Compute nothing: threads and CUDA do not survive a fork.
    """
    import matplotlib

    matplotlib.use("agg")
    modules = [
        "matplotlib.pyplot",
        "torch",
        "atlas.cells.assert_counter",
        "atlas.cells.fresh_start",
        "atlas.cells.graph_scraper",
        "graphs.read",
        "atlas.cells.plot_scraper",
        "atlas.cells.varying_note",
    ]
    if children >= _MANY:
        # torch.optim, torch.func and torch.export import _dynamo on first use, which takes as long as importing torch
        modules += ["pandas", "torch._dynamo"]
        notebook.distributions()
    for module in modules:
        importlib.import_module(module)


def run(
    jobs: Sequence[Job],
    settings: Mapping[str, Any],
    *,
    at_once: int | None = None,
    watch: Callable[[int, Sequence[str]], None] = lambda done, running: None,
) -> Iterator[Outcome]:
    """Run all jobs, and yield the outcome of each as it ends.

    :param settings: sphinx-gallery's settings, filled in.
    :param at_once: how many may run beside each other; by default as many as there are cores.
    :param watch: called with the number done and the names running whenever that changes.
    """
    if jobs:
        prepare_for_children(len(jobs))
    waiting = sorted(jobs, key=lambda job: (job.alone, -job.expected_seconds, job.name))
    slots = at_once or cores()
    running: list[_Running] = []
    done = 0
    try:
        while waiting or running:
            while waiting and len(running) < slots and _may_start(waiting[0], running):
                running.append(_start(waiting.pop(0), settings))
                watch(done, [one.job.name for one in running])
            for one in list(running):
                outcome = _look(one)
                if outcome is not None:
                    running.remove(one)
                    done += 1
                    watch(done, [other.job.name for other in running])
                    yield outcome
            time.sleep(_POLL)
    finally:
        for one in running:
            _end(one)


def _may_start(job: Job, running: Sequence[_Running]) -> bool:
    return not running if job.alone else not any(one.job.alone for one in running)


def _start(job: Job, settings: Mapping[str, Any]) -> _Running:
    shutil.rmtree(job.place.root, ignore_errors=True)
    job.place.script.parent.mkdir(parents=True)
    job.place.docs.mkdir(parents=True)
    shutil.copyfile(job.script, job.place.script)
    line = mmap.mmap(-1, 8)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            child.run(job.place, settings, job.limits, line, parent=parent, end=job.end)
        finally:  # whatever happens, this process must not go on as the build
            os._exit(70)
    return _Running(job, pid, line, time.monotonic())


def _look(one: _Running) -> Outcome | None:
    """The outcome of a run that has ended or must be ended; None while it may go on."""
    job = one.job
    pid, status, used = os.wait4(one.pid, os.WNOHANG)
    if pid:
        one.reaped = True
        return _outcome(one, os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)
    message = ""
    seconds = time.monotonic() - one.started
    if seconds > job.limits.wall_clock and seconds - waited_for_core(one.pid) > job.limits.wall_clock:
        message = (
            f"the script did not end within {job.limits.wall_clock:g} s, and computed little; "
            "does it wait for something that never comes?"
        )
    elif job.place.log.exists() and job.place.log.stat().st_size > job.limits.output:
        message = f"the script wrote more than {job.limits.output:,} bytes past Python's streams; write less"
    if not message:
        return None
    _end(one)
    return Outcome(job, fault=_fault(one, message))


def _outcome(one: _Running, code: int, seconds: float) -> Outcome:
    """The outcome of a process that has ended with exit code ``code``, after ``seconds`` of CPU time."""
    job = one.job
    left = _left_running(one.pid)
    try:
        result = json.loads(job.place.result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        result = None
    if result is None:
        return Outcome(job, fault=_fault(one, _death(code, seconds, job.limits.seconds)))
    if "fault" in result:
        return Outcome(job, fault=_mapped(Fault(**result["fault"]), job))
    if left:
        return Outcome(job, fault=_fault(one, "the script leaves a process running; wait for it, or end it"))
    return Outcome(job, facts=result)


def _death(code: int, seconds: float, limit: float) -> str:
    """What to say of a process that has ended without a result."""
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and seconds > limit):
        return (
            f"the script did not end within {limit:g} s of CPU time; make it shorter, "
            "or allow more with '# sphinx_gallery_time_limit = SECONDS'"
        )
    called = "" if code < 0 else " before the page was finished; was os._exit called?"
    return f"the script's process {'was ' if code < 0 else ''}{ending.reason(code)}{called}"


def _fault(one: _Running, message: str) -> Fault:
    """A fault of a process that left no result, at the line that it ran last."""
    line = int.from_bytes(one.line[:8], "little")
    log = one.job.place.log
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else ""
    return _mapped(Fault(str(one.job.place.script), line, message, said, cell_of(one.job.script, line)), one.job)


def _mapped(fault: Fault, job: Job) -> Fault:
    """The same fault with the path of the original script. What ran was a copy, and its author does not know the copy."""
    copy, original = str(job.place.script), _shown(job.script)
    return Fault(
        original, fault.line, fault.message.replace(copy, original), fault.details.replace(copy, original), fault.cell
    )


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _left_running(session: int) -> bool:
    """Whether processes of the example's session still run after a while. If so, they are killed."""
    until = time.monotonic() + _GRACE
    while ending.running(session):
        if time.monotonic() > until:
            ending.kill_session(session)
            return True
        time.sleep(_POLL)
    return False


def _end(one: _Running) -> None:
    """Kill a run and all that it started, and wait for it."""
    ending.kill_session(one.pid)
    if not one.reaped:
        os.kill(one.pid, signal.SIGKILL)  # it may not have started its session yet
        os.waitpid(one.pid, 0)
        one.reaped = True
