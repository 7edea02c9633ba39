"""A crash, a hang or an exception costs one item, is named, and leaves the others as they are."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from atlas.runner.processes import ending, sandbox


def work(item: Any) -> Any:
    match item:
        case "crash":
            faulthandler.disable()  # pytest's would print where, with all modules of this process
            os.kill(os.getpid(), signal.SIGSEGV)
        case "signal without a name":
            os.kill(os.getpid(), 40)
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(1000)
        case "raise":
            raise ValueError("no\nmore")
    return item * 2


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_each_item_has_its_answer(at_once: int) -> None:
    items = [1, "crash", 2, "raise", "hang", 3, "exit", 4]
    answers = sandbox.run(work, items, at_once=at_once, time_limit=5.0)
    assert answers == [
        (2, ""),
        (None, "killed by SIGSEGV"),
        (4, ""),
        (None, "ValueError: no"),
        (None, "no answer within 5 s"),
        (6, ""),
        (None, "ended with exit code 3"),
        (8, ""),
    ]


def test_a_signal_without_a_name_has_a_number() -> None:
    answers = sandbox.run(work, [1, "signal without a name", 2], at_once=1)
    assert answers == [(2, ""), (None, "killed by signal 40"), (4, "")]


@pytest.mark.parametrize("at_once", [1, 2])
def test_items_apart_have_a_process_each(at_once: int) -> None:
    items = [1, "crash", 2, "raise", "exit", 3]
    answers = sandbox.run(lambda item: [os.getpid(), work(item)], items, at_once=at_once, apart=True)
    pids = [answer[0] for answer, _why in answers if answer]
    assert len(set(pids)) == len(pids) == 3
    assert [answer and answer[1] for answer, _why in answers] == [2, None, 4, None, None, 6]


def test_an_error_here_ends_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is the error that is seen."""
    started = []
    start = sandbox._start

    def noted(*arguments: Any) -> Any:
        started.append(start(*arguments))
        return started[-1]

    def broken(*arguments: Any) -> str:
        raise TypeError("no reason")

    monkeypatch.setattr(sandbox, "_start", noted)
    monkeypatch.setattr(ending, "reason", broken)
    with pytest.raises(TypeError, match="no reason"):
        sandbox.run(work, ["exit", "hang"], at_once=2, time_limit=60.0)
    assert len(started) == 2
    for worker in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(worker.pid, os.WNOHANG)


def test_a_crash_dumps_nothing(tmp_path: Path) -> None:
    """Where faulthandler is on, as it is in pytest, each crash would list seventy modules."""
    with (tmp_path / "dump").open("w") as dump:
        faulthandler.enable(dump)
        sandbox.run(work, ["crash"], at_once=1)
    faulthandler.enable()
    assert (tmp_path / "dump").read_text() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        sandbox.run(lambda item: os.write(writer, f"{os.getpid()}\n".encode()) and time.sleep(1000), [1], at_once=1)
    os.close(writer)
    worker = int(os.read(reader, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    ready, _, _ = select.select([reader], [], [], 10)  # at its end: nobody holds the other end any more
    os.close(reader)
    if not ready:
        os.kill(worker, signal.SIGKILL)
    assert ready


def test_nothing_to_do() -> None:
    assert sandbox.run(work, [], at_once=2) == []


def test_long_answers_come_whole() -> None:
    assert sandbox.run(lambda n: "x" * n, [200_000, 10], at_once=1) == [("x" * 200_000, ""), ("x" * 10, "")]
