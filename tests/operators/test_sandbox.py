"""A crash, a hang or an exception costs one item, is named, and leaves the others as they are."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from typing import Any

import pytest

from atlas.operators import sandbox


def work(item: Any) -> Any:
    match item:
        case "crash":
            faulthandler.disable()  # pytest's would print where, with all modules of this process
            os.kill(os.getpid(), signal.SIGSEGV)
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
    answers = sandbox.run(work, items, at_once=at_once, time_limit=1.0)
    assert answers == [
        (2, ""),
        (None, "killed by SIGSEGV"),
        (4, ""),
        (None, "ValueError: no"),
        (None, "no answer within 1 s"),
        (6, ""),
        (None, "ended with exit code 3"),
        (8, ""),
    ]


def test_nothing_to_do() -> None:
    assert sandbox.run(work, [], at_once=2) == []


def test_long_answers_come_whole() -> None:
    assert sandbox.run(lambda n: "x" * n, [200_000, 10], at_once=1) == [("x" * 200_000, ""), ("x" * 10, "")]
