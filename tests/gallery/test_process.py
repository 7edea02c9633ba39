"""Examples run apart from each other, within their limits, and end with all that they have started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas import toolbox
from atlas.gallery import process
from atlas.gallery.process import Job, Limits, Outcome, end_with_parent
from gallery.faulty import HEAD, HEALTHY

Run = Callable[..., dict[str, Outcome]]


def test_an_error_in_the_pool_ends_all_children(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is the error that is seen, not one of the clean-up after it."""
    jobs = []
    for name, text in {"ends": HEALTHY, "sleeps": HEAD + "time.sleep(1000)\n"}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        jobs.append(Job(name, tmp_path / f"{name}.py", tmp_path / "running" / name))
    started, start = [], process._start_job

    def noted(*arguments: Any) -> Any:
        started.append(start(*arguments))
        return started[-1]

    def broken(*arguments: Any) -> Outcome:
        raise TypeError("no outcome")

    monkeypatch.setattr(process, "_start_job", noted)
    monkeypatch.setattr(process, "_read_outcome", broken)
    with pytest.raises(TypeError, match="no outcome"):
        list(process.run_jobs(jobs, settings, at_once=2))
    assert len(started) == 2
    for one in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(one.pid, os.WNOHANG)


def _state(pid: int) -> str:
    """``R`` for a process that runs, ``Z`` for a zombie, …; nothing for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("how", ["", "os.setpgid(0, 0);"], ids=["same group", "group of its own"])
def test_a_process_that_is_left_running_is_ended(run: Run, tmp_path: Path, how: str) -> None:
    code = f"import os, time; {how} open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    wait = f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)"
    script = f"{HEALTHY}\np = subprocess.Popen([sys.executable, '-c', {code!r}])\n{wait}\ntime.sleep(0.2)\n"
    outcome = run({"page": script})["page"]
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    try:
        assert outcome.fault is not None and "leaves a process running" in outcome.fault.message
        until = time.monotonic() + 10
        while _state(pid) not in ("", "Z") and time.monotonic() < until:
            time.sleep(0.02)
        assert _state(pid) in ("", "Z")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_time_in_which_a_script_waits_for_a_core_is_not_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_waited_for_core", lambda pid: 100.0)
    outcome = run({"page": HEALTHY + "\ntime.sleep(7)\n"}, Limits(seconds=1.0))["page"]
    assert outcome.fault is None, outcome.fault


def _exit_code(parent: int) -> int:
    """The exit code of a process that says that ``parent`` is its parent, and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            end_with_parent(parent)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_process_ends_with_its_parent() -> None:
    """Also if the parent ended before it could ask for that: it belongs to another process by then."""
    assert _exit_code(os.getpid()) == 0
    assert _exit_code(os.getppid()) == -signal.SIGKILL


def test_waiting_for_a_core_is_known_and_sleeping_is_not_that() -> None:
    """Two processes share one core, so that each waits about half of the time."""
    code = f"import os, time; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile True: pass"
    several = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    several.append(subprocess.Popen(["sleep", "9"]))
    try:
        time.sleep(2.0)
        *pair, asleep = (process._waited_for_core(one.pid) for one in several)
    finally:
        for one in several:
            one.kill()
            one.wait()
    assert sum(pair) > 0.2 and asleep < 0.9
    assert process._waited_for_core(several[0].pid) == 0.0, "it is gone"


# -- The GPU ----------------------------------------------------------------------------------------


ASKING = ["raise AttributeError('no such name')", "import os; os._exit(1)", "pass", "import time; time.sleep(60)"]


@pytest.mark.parametrize("asking", [*ASKING, "print('noise'); print('Test GPU')"])
def test_a_question_that_fails_is_no_machine_without_a_gpu(monkeypatch: pytest.MonkeyPatch, asking: str) -> None:
    monkeypatch.setattr(process.scripts, "may_have_gpu", lambda: True)
    monkeypatch.setattr(process, "_ASK", asking)
    monkeypatch.setattr(process, "_GPU_TIME_LIMIT", 2.0 if "sleep" in asking else 60.0)
    failed = contextlib.nullcontext() if "GPU" in asking else pytest.raises((subprocess.SubprocessError, LookupError))
    with failed:
        assert process.find_gpu() == "Test GPU"


# -- Isolation --------------------------------------------------------------------------------------

_CHANGES = """
import matplotlib.pyplot as plt
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.manual_seed(1)
torch.set_num_threads(2)
warnings.simplefilter("ignore")
plt.rcParams["font.size"] = 3
os.environ["ATLAS_TEST"] = "changed"
sys.path.insert(0, "elsewhere")
torch.ones_like = None
"""
_LOOKS = """
import gc, matplotlib
print(torch.tensor(1.5).dtype, torch.is_grad_enabled(), torch.get_num_threads(), torch.rand(1).item())
print(matplotlib.rcParams["font.size"], os.environ.get("ATLAS_TEST"), "elsewhere" in sys.path, torch.ones_like is None)
print("error" in {action for action, *_ in warnings.filters}, gc.get_threshold())
"""


def _output(outcome: Outcome) -> str:
    assert outcome.fault is None, outcome.fault
    text = (outcome.job.made / f"{outcome.job.name}.rst").read_text(encoding="utf-8")
    return text.partition("sphx-glr-script-out")[2].partition(".. rst-class::")[0]


def test_a_page_comes_out_the_same_whatever_runs_before_it(run: Run) -> None:
    told = [sys.executable, "-c", "import gc; print(gc.get_threshold())"]
    of_a_new_python = subprocess.run(told, capture_output=True, encoding="utf-8").stdout.strip()
    toolbox.collect_garbage_seldom()
    alone = _output(run({"looks": HEAD + _LOOKS})["looks"])
    after = _output(run({"changes": HEAD + _CHANGES, "looks": HEAD + _LOOKS})["looks"])
    assert "torch.float32 True 1" in alone and f"True {of_a_new_python}" in alone
    assert alone == after


def test_an_example_that_measures_time_runs_alone() -> None:
    one, times, two = (Job(name, Path(), Path(), alone=name == "times") for name in ("one", "times", "two"))
    running = process._Running(one, 0, None, 0.0)
    assert process._may_start(two, [running]) and not process._may_start(times, [running])
    assert not process._may_start(one, [process._Running(times, 0, None, 0.0)])
