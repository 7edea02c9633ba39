"""A crash, a hang or an exception costs one item, is named, and leaves the others as they are."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from typing import Any

import pytest

import crash_safe
from crash_safe import answer_each


def work(item: Any) -> Any:
    match item:
        case "crash":
            faulthandler.disable()  # pytest's would print where, with all modules of this process
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exit":
            os._exit(3)
        case "busy":
            while True:
                pass
        case "asleep":
            time.sleep(1000)
        case "slow":
            time.sleep(4)
        case "raise":
            raise ValueError("no\nmore")
    return item * 2


@pytest.mark.parametrize(("jobs", "apart"), [(1, False), (3, False), (2, True)])
def test_each_item_has_its_answer(jobs: int, apart: bool) -> None:
    items = [1, "crash", 2, "raise", 3, "exit", "exit", 4]
    ended = (None, "ended with exit code 3")
    killed, raised = (None, "killed by SIGSEGV"), (None, "ValueError: no")
    expected = [(2, ""), killed, (4, ""), raised, (6, ""), ended, ended, (8, "")]
    assert answer_each(work, items, jobs, apart=apart) == expected


def test_a_hang_is_ended_and_named_and_who_waits_for_a_core_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slow takes four times as long as it may work, by the clock."""
    monkeypatch.setattr(crash_safe, "CPU_SECONDS", 1)
    monkeypatch.setattr(crash_safe, "CLOCK_SECONDS", 20)
    busy = (None, "no answer within 1 s of CPU time")
    assert answer_each(work, ["busy", 1, "slow"], 1) == [busy, (2, ""), ("slowslow", "")]
    monkeypatch.setattr(crash_safe, "CLOCK_SECONDS", 1)
    assert answer_each(work, ["asleep", 1], 1) == [(None, "no answer within 1 s"), (2, "")]


def test_items_apart_have_a_process_each() -> None:
    for apart, processes in ((False, 2), (True, 4)):
        answers = answer_each(lambda _: os.getpid(), range(4), 2, apart=apart)
        assert len({pid for pid, _why in answers}) == processes


def test_no_items_and_large_answers() -> None:
    assert answer_each(work, [], 2) == []
    assert answer_each(work, ["x" * 200_000], 2) == [("x" * 400_000, "")]
