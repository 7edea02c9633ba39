"""The lines of chosen code are reported as they run; from Python 3.12 on, at little cost to loops that run often."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from atlas.cells import line_watcher


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    line_watcher.stop()


def _ran(source: str, lasting: bool) -> list[int]:
    """The lines that are reported while ``source`` runs, if each is wanted once, or each time."""
    code = compile(source, "watched.py", "exec")
    lines = []

    def note(line: int) -> bool:
        lines.append(line)
        return lasting

    line_watcher.start(lambda code: note if code.co_filename == "watched.py" else None, lambda code, line: None)
    exec(code, {})
    line_watcher.stop()
    return lines


LOOP = "for n in range(100):\n    n\n    n * n\n"


def test_each_line_is_reported() -> None:
    assert _ran("x = 1\nx = 2\n", True) == [1, 2]
    assert _ran(LOOP, True).count(3) == 100


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.settrace cannot forget a line")
def test_a_line_that_is_wanted_once_is_reported_once() -> None:
    assert _ran(LOOP, False).count(3) == 1


def test_watching_starts_again_for_the_same_code() -> None:
    """A build runs each script in its own process; a test may watch one twice."""
    code = compile("x = 1\n", "watched.py", "exec")
    for _ in range(2):
        lines = []
        line_watcher.start(lambda code: lambda number: bool(lines.append(number)), lambda code, line: None)  # noqa: B023
        exec(code, {})
        line_watcher.stop()
        assert 1 in lines


def test_code_that_nobody_chose_is_asked_for_once() -> None:
    asked = []
    code = compile("def f(): pass\nfor _ in range(9): f()\n", "watched.py", "exec")
    line_watcher.start(lambda code: asked.append(code.co_name), lambda code, line: None)
    exec(code, {})
    line_watcher.stop()
    assert asked.count("f") == 1
