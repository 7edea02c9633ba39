"""Run examples in child processes: as many at once as there are cores, the longest first, each within its limits."""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import child, notebooks
from .child import Limits, Workplace
from .scripts import Fault, find_cell, may_have_gpu

_POLL = 0.02  # seconds
_GRACE = 2.0  # seconds that processes which an example started have to end after it
_GPU_TIME_LIMIT = 120.0  # seconds; a GPU that nobody uses takes some to wake up, and PyTorch must be imported
_ASK = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
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


def count_cores() -> int:
    """How many cores this process may use: those that it may run on, or fewer if a container has a quota; at least 1."""
    import joblib

    return joblib.cpu_count()


def find_gpu() -> str:
    """The name of the first CUDA device, which another process asks: one that has used CUDA must not fork. Empty without one.

    :raises RuntimeError: if PyTorch fails, or does not answer. That is not a machine without a GPU.
    """
    if not may_have_gpu():
        return ""
    try:
        asked = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, timeout=_GPU_TIME_LIMIT, check=True)
        return asked.stdout.decode().splitlines()[-1]
    except (subprocess.SubprocessError, LookupError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace")
        raise RuntimeError(
            f"PyTorch could not be asked what GPU is here; does nvidia-smi answer? {error}\n{said}"
        ) from None


def import_before_fork(children: int) -> None:
    """Import the heavy modules before forking, so that children share them.

    Compute nothing: threads and CUDA do not survive a fork.
    """
    import matplotlib

    matplotlib.use("agg")
    modules = ["matplotlib.pyplot", "torch", "graphs.read", "graphs.model", "pypandoc"]
    if children >= _MANY:
        # torch.optim, torch.func and torch.export import _dynamo on first use, which takes as long as importing torch
        modules += ["pandas", "torch._dynamo"]
        notebooks.find_distributions()
    for module in modules:
        importlib.import_module(module)


def run_jobs(jobs: Sequence[Job], settings: Mapping[str, Any], *, at_once: int | None = None) -> Iterator[Outcome]:
    """Run all jobs, and yield the outcome of each as it ends.

    :param settings: sphinx-gallery's settings, filled in.
    :param at_once: how many may run beside each other; by default as many as there are cores.
    """
    if jobs:
        import_before_fork(len(jobs))
    waiting = sorted(jobs, key=lambda job: (job.alone, -job.expected_seconds, job.name))
    slots = at_once or count_cores()
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < slots and _may_start(waiting[0], running):
                running.append(_start_job(waiting.pop(0), settings))
            for one in list(running):
                outcome = _poll_job(one)
                if outcome is not None:
                    running.remove(one)
                    yield outcome
            time.sleep(_POLL)
    finally:
        for one in running:
            _end_job(one)


def _may_start(job: Job, running: Sequence[_Running]) -> bool:
    return not running if job.alone else not any(one.job.alone for one in running)


def _start_job(job: Job, settings: Mapping[str, Any]) -> _Running:
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
            child.run_example(job.place, settings, job.limits, line, parent, job.end)
        finally:  # whatever happens, this process must not go on as the build
            os._exit(70)
    return _Running(job, pid, line, time.monotonic())


def _poll_job(one: _Running) -> Outcome | None:
    """The outcome of a run that has ended or must be ended; None while it may go on."""
    job = one.job
    pid, status, used = os.wait4(one.pid, os.WNOHANG)
    if pid:
        return _read_outcome(one, os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)
    message = ""
    seconds = time.monotonic() - one.started
    if seconds > job.limits.wall_clock and seconds - _waited_for_core(one.pid) > job.limits.wall_clock:
        message = (
            f"the script did not end within {job.limits.wall_clock:g} s, and computed little; "
            "does it wait for something that never comes?"
        )
    elif job.place.log.exists() and job.place.log.stat().st_size > job.limits.output:
        message = f"the script wrote more than {job.limits.output:,} bytes past Python's streams; write less"
    if not message:
        return None
    _end_job(one)
    return Outcome(job, fault=_make_fault(one, message))


def _waited_for_core(pid: int) -> float:
    """How many seconds the main thread of process ``pid`` could have run but had no core; 0 where that is not known.

    From ``/proc/PID/schedstat``: https://docs.kernel.org/scheduler/sched-stats.html.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _read_outcome(one: _Running, code: int, seconds: float) -> Outcome:
    """The outcome of a process that has ended with exit code ``code``, after ``seconds`` of CPU time."""
    job = one.job
    left = _kill_what_is_left(one.pid)
    try:
        result = json.loads(job.place.result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Outcome(job, fault=_make_fault(one, _explain_death(code, seconds, job.limits.seconds)))
    if "fault" in result:
        return Outcome(job, fault=_name_original(Fault(**result["fault"]), job))
    if left:
        return Outcome(job, fault=_make_fault(one, "the script leaves a process running; wait for it, or end it"))
    return Outcome(job, facts=result)


def _explain_death(code: int, seconds: float, limit: float) -> str:
    """What to say of a process that has ended without a result."""
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and seconds > limit):
        return (
            f"the script did not end within {limit:g} s of CPU time; make it shorter, "
            "or allow more with '# sphinx_gallery_time_limit = SECONDS'"
        )
    if code >= 0:
        return f"the script's process ended with exit code {code} before the page was finished; was os._exit called?"
    names = {int(one): one.name for one in signal.Signals}  # real-time signals have none
    return f"the script's process was killed by {names.get(-code, f'signal {-code}')}"


def _make_fault(one: _Running, message: str) -> Fault:
    """A fault of a process that left no result, at the line that it ran last."""
    line, log = int.from_bytes(one.line[:8], "little"), one.job.place.log
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else ""
    cell = find_cell(one.job.script, line)
    return _name_original(Fault(str(one.job.place.script), line, message, said, cell), one.job)


def _name_original(fault: Fault, job: Job) -> Fault:
    """The same fault with the path of the original script. What ran was a copy, and its author does not know the copy."""
    copied, original = str(job.place.script), str(job.script).removeprefix(f"{Path.cwd()}/")
    said = (text.replace(copied, original) for text in (fault.message, fault.details))
    return Fault(original, fault.line, *said, fault.cell)


def _list_session(session: int) -> list[int]:
    """The processes of ``session`` that have not ended; outside of Linux they are not known.

    A zombie has ended: only its parent has not waited for it.
    """
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc") if sys.platform == "linux" else []):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended just now
            stat = Path("/proc", pid, "stat").read_bytes()
            # "PID (NAME) STATE PPID GROUP SESSION …", and the name may hold anything
            state, _, _, of, *_ = stat.rpartition(b")")[2].split()
            if int(of) == session and state not in (b"Z", b"X"):
                found.append(int(pid))
    return found


def _kill_session(session: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for pid in _list_session(session):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _kill_what_is_left(session: int) -> bool:
    """Whether processes of the example's session still run after a while. If so, they are killed."""
    until = time.monotonic() + _GRACE
    while _list_session(session):
        if time.monotonic() > until:
            _kill_session(session)
            return True
        time.sleep(_POLL)
    return False


def _end_job(one: _Running) -> None:
    """Kill a run and all that it started, and wait for it."""
    _kill_session(one.pid)
    with contextlib.suppress(ProcessLookupError, ChildProcessError):  # its outcome could not be read
        os.kill(one.pid, signal.SIGKILL)  # it may not have started its session yet
        os.waitpid(one.pid, 0)
