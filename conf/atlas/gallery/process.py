"""Run examples in child processes: as many at once as there are cores, each within its limits.

A process is forked from the build, which has imported torch and matplotlib but computed nothing. It starts a session, so that
it can be ended together with everything that it starts. It runs the script in a folder that holds nothing else, and writes
the page's outputs and a result, or a fault.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import logging
import math
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import joblib
import matplotlib

from atlas import toolbox

from . import asserts, notebooks, scrapers, scripts, sphinx_gallery_patches
from .scripts import Fault, PageFault

_RESULT = "result.json"
_POLL = 0.02  # seconds
_GRACE = 2.0  # seconds that processes which an example started have to end after it
_GPU_TIME_LIMIT = 120.0  # seconds; a GPU that nobody uses takes some to wake up, and PyTorch must be imported
_ASK = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
_MANY = 4  # examples from which on it pays to import, once for all, what only some of them need


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the machine one example may take."""

    seconds: float = 60.0
    """CPU time that its process may take. It does not depend on what else the machine does."""
    output: int = 1_000_000
    """Bytes that it may write past Python's streams."""
    memory: int = 6 * 2**30
    """Bytes that it may allocate on top of what the build has."""

    @property
    def wall_clock(self) -> float:
        """Seconds until an example is ended that sleeps, or waits for what never comes; waiting for a core is not counted."""
        return 5 * self.seconds


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Job:
    """One example to run, in the folder ``root``, which nobody needs after the run."""

    name: str
    script: Path
    root: Path
    limits: Limits = LIMITS
    alone: bool = False
    """Whether nothing else may run beside it: it measures time."""
    end: int | None = None
    """The line from which on the script must not run; None to run all of it."""

    @property
    def copied(self) -> Path:
        """The copy of the script that runs, with nothing beside it."""
        return self.root / "examples" / self.script.parent.name / self.script.name

    @property
    def made(self) -> Path:
        """Where sphinx-gallery writes; in ``docs``, as on the site."""
        return self.root / "docs" / "gallery" / self.script.parent.name

    @property
    def log(self) -> Path:
        """What was written to the process's file descriptors 1 and 2, not through ``sys.stdout`` and ``sys.stderr``."""
        return self.root / "log.txt"


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


def find_gpu() -> str:
    """The name of the first CUDA device, which another process asks: one that has used CUDA must not fork. Empty without one.

    :raises SubprocessError, LookupError: if PyTorch fails, or does not answer. That is not a machine without a GPU.
    """
    if not scripts.may_have_gpu():
        return ""
    command = [sys.executable, "-c", _ASK]
    asked = subprocess.run(command, stdout=subprocess.PIPE, timeout=_GPU_TIME_LIMIT, check=True, encoding="utf-8")
    return asked.stdout.splitlines()[-1]


def import_before_fork(children: int) -> None:
    """Import the heavy modules before forking, so that children share them.

    Compute nothing: threads and CUDA do not survive a fork.
    """
    matplotlib.use("agg")
    modules = ["torch", "drawgrad.read", "drawgrad.model", "pypandoc"]
    if children >= _MANY:
        # torch.optim, torch.func and torch.export import _dynamo on first use, which takes as long as importing torch
        modules += ["pandas", "torch._dynamo"]
        notebooks.find_distributions()
    for module in modules:
        importlib.import_module(module)


def run_jobs(jobs: Sequence[Job], settings: Mapping[str, Any], *, at_once: int = 0) -> Iterator[Outcome]:
    """Run all jobs, and yield the outcome of each as it ends.

    :param settings: sphinx-gallery's settings, filled in.
    :param at_once: how many may run beside each other; 0 for as many as there are cores.
    """
    if jobs:
        import_before_fork(len(jobs))
    waiting = sorted(jobs, key=lambda job: (job.alone, job.name))
    slots, running = at_once or joblib.cpu_count(), []  # or fewer, if a container has a quota
    try:
        while waiting or running:
            while waiting and len(running) < slots and _may_start(waiting[0], running):
                running.append(_start_job(waiting.pop(0), settings))
            for one in list(running):
                if (outcome := _poll_job(one)) is not None:
                    running.remove(one)
                    yield outcome
            time.sleep(_POLL)
    finally:
        for one in running:
            _end_job(one)


def _may_start(job: Job, running: Sequence[_Running]) -> bool:
    return not running if job.alone else not any(one.job.alone for one in running)


def _start_job(job: Job, settings: Mapping[str, Any]) -> _Running:
    shutil.rmtree(job.root, ignore_errors=True)
    job.copied.parent.mkdir(parents=True)
    shutil.copyfile(job.script, job.copied)
    job.log.touch()
    line = mmap.mmap(-1, 8)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _run_example(job, settings, line, parent)
        finally:  # whatever happens, this process must not go on as the build
            os._exit(70)
    return _Running(job, pid, line, time.monotonic())


def _poll_job(one: _Running) -> Outcome | None:
    """The outcome of a run that has ended or must be ended; None while it may go on."""
    job, seconds = one.job, time.monotonic() - one.started
    pid, status, used = os.wait4(one.pid, os.WNOHANG)
    if pid:
        return _read_outcome(one, os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)
    limit = job.limits.wall_clock
    if seconds > limit and seconds - _waited_for_core(one.pid) > limit:
        message = f"the script did not end within {limit:g} s, and computed little; "
        message += "does it wait for something that never comes?"
    elif job.log.stat().st_size > job.limits.output:
        message = f"the script wrote more than {job.limits.output:,} bytes past Python's streams; write less"
    else:
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
        result = json.loads((job.root / _RESULT).read_text(encoding="utf-8"))
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
        way_out = "make it shorter, or allow more with '# sphinx_gallery_time_limit = SECONDS'"
        return f"the script did not end within {limit:g} s of CPU time; {way_out}"
    if code >= 0:
        return f"the script's process ended with exit code {code} before the page was finished; was os._exit called?"
    names = {int(one): one.name for one in signal.Signals}  # real-time signals have none
    return f"the script's process was killed by {names.get(-code, f'signal {-code}')}"


def _make_fault(one: _Running, message: str) -> Fault:
    """A fault of a process that left no result, at the line that it ran last."""
    line, job = int.from_bytes(one.line[:8], "little"), one.job
    said = job.log.read_text(encoding="utf-8", errors="replace")[-2000:]
    return _name_original(Fault(str(job.copied), line, message, said), job)


def _name_original(fault: Fault, job: Job) -> Fault:
    """The same fault with the path of the original script. What ran was a copy, and its author does not know the copy."""
    copied, original = str(job.copied), str(job.script).removeprefix(f"{Path.cwd()}/")
    said = (text.replace(copied, original) for text in (fault.message, fault.details))
    return Fault(original, fault.line, *said)


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
    for kill, number in ((os.killpg, session), *((os.kill, pid) for pid in _list_session(session))):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(number, signal.SIGKILL)


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


# -- In the process of the example ---------------------------------------------------------------------------


def _run_example(job: Job, settings: dict[str, Any], line: mmap.mmap, parent: int) -> NoReturn:
    """Run an example. This process ends here: what the build does at its end must not be done in it too.

    :param line: shared memory for the number of the running line, which the build reads if this process dies.
    :param parent: the build's process number.
    """
    started = time.monotonic()
    gc.freeze()  # the collector would walk all objects of the build, which took longer than most examples
    toolbox.collect_garbage_as_usual()
    try:
        _detach(job, parent)
        scripts.check_source(job.copied)
        _set_limits(job.limits)
        import torch

        torch.set_num_threads(1)  # as many examples run at once as there are cores; and sums must not depend on them
        asserts.start_watching(line, job.end)
        scrapers.remember_operands(job.copied)
        of_cells = {"image_scrapers": (*settings["image_scrapers"], _refuse_files)}
        compiler = asserts.WatchedCompile
        sphinx_gallery_patches.make_page(job.copied, job.made, settings | of_cells, job.end, compiler)
        result: dict[str, Any] = {"seconds": round(time.monotonic() - started, 3)}
    except BaseException as error:
        result = {"fault": asdict(scripts.explain_error(error, job.copied, int.from_bytes(line[:8], "little")))}
    toolbox.write_whole(job.root / _RESULT, json.dumps(result))
    os._exit(0)


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that ends. Does nothing outside of Linux.

    :param parent: the parent's number, taken before the fork: a parent that has ended by now sends no signal.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def _detach(job: Job, parent: int) -> None:
    """Start a session, end when the build ends, and write to files instead of the build's terminal."""
    os.setsid()
    end_with_parent(parent)
    faulthandler.disable()  # where the build has enabled it, it writes to the build's terminal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log = os.open(job.log, os.O_WRONLY | os.O_APPEND)
    for target, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(source, target)
    sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8", buffering=1, closefd=False) for n in (1, 2))
    logging.getLogger("sphinx").handlers[:] = [logging.NullHandler()]  # its own write to the build's terminal


def _set_limits(limits: Limits) -> None:
    if sys.platform == "linux" and not scripts.may_have_gpu():  # CUDA reserves far more than it uses
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + limits.memory, used + limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The first limit sends SIGXCPU; a script that blocks it is killed at the second
    seconds = math.ceil(limits.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def _refuse_files(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """A scraper, called after each cell: a script leaves no files."""
    script = Path(block_vars["src_file"])
    others = sorted(path.name for path in script.parent.iterdir() if path != script)
    if others:
        first = block.lineno + len(block.content) - len(block.content.lstrip("\n"))
        raise PageFault(f"{script}:{first}: this cell leaves a file beside the script: {', '.join(others)}")
    return ""
