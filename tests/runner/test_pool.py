"""How the pool of child processes ends: with every child, with the right error, and for the right reason."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atlas.runner.processes import pool
from atlas.runner.processes.child import Workplace
from atlas.runner.processes.limits import Limits
from atlas.runner.processes.pool import Outcome
from runner.faulty import HEAD, HEALTHY

Run = Callable[..., dict[str, Outcome]]

_PR_SET_CHILD_SUBREAPER = 36
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


def test_an_error_in_the_pool_ends_all_children(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is the error that is seen, not one of the clean-up after it."""
    scripts = {"ends": HEALTHY, "sleeps": HEAD + "time.sleep(1000)\n"}
    jobs = []
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text)
        place = Workplace(tmp_path / "running" / name, "faults", f"{name}.py")
        jobs.append(pool.Job(name, tmp_path / f"{name}.py", place, Limits()))

    started = []
    start = pool._start

    def noted(*arguments: Any) -> Any:
        started.append(start(*arguments))
        return started[-1]

    def broken(*arguments: Any) -> Outcome:
        raise TypeError("no outcome")

    monkeypatch.setattr(pool, "_start", noted)
    monkeypatch.setattr(pool, "_outcome", broken)
    with pytest.raises(TypeError, match="no outcome"):
        list(pool.run(jobs, settings, at_once=2))
    assert len(started) == 2
    for one in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(one.pid, os.WNOHANG)


@pytest.fixture
def nobody_reaps() -> Iterator[None]:
    """As in a container whose process 1 does not wait for orphans: they stay zombies."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    yield
    prctl(_PR_SET_CHILD_SUBREAPER, 0)
    while _zombies():
        os.waitpid(_zombies()[0], 0)


def _zombies() -> list[int]:
    """The children of this process that have ended and were not waited for."""
    children = [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
    return [int(pid) for pid in children if _state(int(pid)) == "Z"]


def _state(pid: int) -> str:
    """``R`` for a process that runs, ``Z`` for a zombie, …; nothing for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@linux
@pytest.mark.usefixtures("nobody_reaps")
def test_a_zombie_is_not_a_process_that_runs(run: Run) -> None:
    script = HEALTHY + "\np = subprocess.Popen(['true'])\ntime.sleep(0.5)\n"
    assert run({"page": script})["page"].fault is None


@linux
@pytest.mark.parametrize("how", ["", "os.setpgid(0, 0);"], ids=["same group", "group of its own"])
def test_a_process_that_is_left_running_is_ended(run: Run, tmp_path: Path, how: str) -> None:
    code = f"import os, time; {how} open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    wait = f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)"
    script = f"{HEALTHY}\np = subprocess.Popen([sys.executable, '-c', {code!r}])\n{wait}\ntime.sleep(0.2)\n"
    outcome = run({"page": script})["page"]
    pid = int((tmp_path / "pid").read_text())
    try:
        assert outcome.fault is not None
        assert "leaves a process running" in outcome.fault.message
        until = time.monotonic() + 10
        while _state(pid) not in ("", "Z") and time.monotonic() < until:
            time.sleep(0.02)
        assert _state(pid) in ("", "Z")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_time_in_which_a_script_does_not_compute_is_not_cpu_time(run: Run) -> None:
    """On a machine that does ten other things, a script waits most of the time; that is not its fault."""
    outcome = run({"page": HEALTHY + "\ntime.sleep(3)\n"}, Limits(seconds=2.0))["page"]
    assert outcome.fault is None, outcome.fault


def test_time_in_which_a_script_waits_for_a_core_is_not_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "waited_for_core", lambda pid: 100.0)
    outcome = run({"page": HEALTHY + "\ntime.sleep(7)\n"}, Limits(seconds=1.0))["page"]
    assert outcome.fault is None, outcome.fault


def test_a_crash_dumps_nothing_into_the_log_of_the_build(run: Run, tmp_path: Path) -> None:
    """Where faulthandler is on, as it is in pytest, it would list seventy modules."""
    with (tmp_path / "dump").open("w") as dump:
        before = faulthandler.is_enabled()
        faulthandler.enable(dump)
        try:
            outcome = run({"page": HEAD + "os.kill(os.getpid(), signal.SIGSEGV)\n"})["page"]
        finally:
            faulthandler.disable()
            if before:
                faulthandler.enable()
    assert outcome.fault is not None
    assert "killed by SIGSEGV" in outcome.fault.message
    assert (tmp_path / "dump").read_text() == ""
