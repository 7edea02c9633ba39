"""Every assert that ran counts, in whatever thread it ran; one that did not run is named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from atlas.cells import assert_counter, line_watcher

Count = Callable[..., str]

IN_A_THREAD = """
import threading

def check():
    assert 1 < 2
    assert (
        2 <
        3
    )

thread = threading.Thread(target=check)
thread.start()
thread.join()
"""
IN_A_POOL = """
from concurrent.futures import ThreadPoolExecutor

def check(number):
    assert number < 3

with ThreadPoolExecutor(2) as pool:
    list(pool.map(check, range(3)))
"""
# PyTorch's autograd calls hooks and custom backwards for a GPU in threads like this one, which `threading` does not know
IN_A_FOREIGN_THREAD = """
import ctypes

@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def check(argument):
    assert 1 < 2

thread = ctypes.c_ulong()
pthreads = ctypes.CDLL(None)
pthreads.pthread_create(ctypes.byref(thread), None, check, None)
pthreads.pthread_join(thread, None)
"""
# A figure has the operands of what backward starts from noted; this output refuses to say where it came from
WHAT_BACKWARD_REFUSES = """
import torch

# graph: y -- A graph
y = torch.ones(4, requires_grad=True).exp()
part, other = y.split(2)
y.mul_(2)
try:
    part.backward(torch.ones(2))
except RuntimeError as error:
    assert "is a view" in str(error)
assert 1 < 2
"""
HALF = """
import threading

def check(number):
    if number > 3:
        assert number
    assert number < 3

thread = threading.Thread(target=check, args=(1,))
thread.start()
thread.join()
"""


@pytest.fixture
def count(tmp_path: Path) -> Iterator[Count]:
    """Run a script as sphinx-gallery does a cell, and return what the page says of its asserts."""

    def of(text: str, name: str = "page.py", **variables: Any) -> str:
        script = tmp_path / name
        script.write_text(f'"""\nA page\n======\n"""\n{text}')
        cell = SimpleNamespace(lineno=5)
        assert_counter.watch({}, name)
        try:
            exec(compile(script.read_text(), str(script), "exec"), {"__name__": "__main__", **variables})
        finally:
            line_watcher.stop()
        return assert_counter.scrape(cell, {"src_file": str(script)}, {}).strip()

    yield of
    line_watcher.stop()


@pytest.mark.parametrize(
    ("script", "asserts"), [(IN_A_THREAD, 2), (IN_A_POOL, 1), ("x = 1\nfor x in range(9):\n    assert x < 9\n", 1)]
)
def test_asserts_count_in_every_thread(count: Count, script: str, asserts: int) -> None:
    assert count(script) == f".. claims:: {asserts} 0 0"


def test_asserts_about_errors_raised_on_purpose_are_counted_apart(count: Count) -> None:
    script = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    assert 'zero' in str(error)\nassert 1 < 2\n"
    assert count(script) == ".. claims:: 2 1 0"


FAILING = """
from contextlib import suppress

def check(number):
    assert (
        number < 3
    )

with suppress(AssertionError):
    check(5)
check(1)
assert 1 < 2
try:
    check(5)
except AssertionError as error:
    assert not str(error)
"""


def test_asserts_that_the_page_lets_fail_are_counted_apart(count: Count) -> None:
    assert count(FAILING) == ".. claims:: 3 1 1"


def test_an_assertion_error_of_somebody_else_is_no_assert_of_the_page(count: Count) -> None:
    script = "try:\n    raising()\nexcept AssertionError:\n    assert True\n"

    def raising() -> None:
        raise AssertionError

    assert count(script, raising=raising) == ".. claims:: 1 1 0"


def test_asserts_count_after_what_backward_refuses(count: Count) -> None:
    assert count(WHAT_BACKWARD_REFUSES) == ".. claims:: 2 1 0"


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="threads that Python did not start are seen by sys.monitoring only"
)
def test_asserts_count_in_threads_that_python_did_not_start(count: Count) -> None:
    assert count(IN_A_FOREIGN_THREAD) == ".. claims:: 1 0 0"


def test_an_assert_that_no_thread_reached_is_named(count: Count) -> None:
    with pytest.raises(assert_counter.ClaimError, match=r"page\.py:10: this assert never ran"):
        count(HALF)


def test_an_assert_does_not_count_while_a_figure_is_drawn(count: Count) -> None:
    """Drawing may call the script's functions, such as a hook that unpacks a saved tensor."""
    script = "def check():\n    assert True\n\nwith paused():\n    check()\n"
    with pytest.raises(assert_counter.ClaimError, match=r"page\.py:6: this assert never ran"):
        count(script, paused=line_watcher.paused)
    assert count(script + "check()\n", "after.py", paused=line_watcher.paused) == ".. claims:: 1 0 0"


def test_the_running_line_is_kept(count: Count) -> None:
    """That of the script's own lines, not of what they call: it is the line at which a hanging script is stopped."""
    seen = []
    memory = bytearray(8)
    assert_counter.report_line_to(memory)
    try:
        count(
            "look()\ndef f():\n    look()\n\nf()\nlook()\n",
            look=lambda: seen.append(int.from_bytes(memory, "little")),
        )
    finally:
        assert_counter.report_line_to(None)
    assert seen == [5, 9, 10]


def test_a_script_is_not_watched_after_its_end(count: Count) -> None:
    """Else the next script's asserts would be counted for it, and everything would run slower."""
    count("assert True\n", "first.py")
    assert count("x = 1\n", "second.py") == ""
    assert sys.gettrace() is None
    assert count("assert True\nassert True\n", "third.py") == ".. claims:: 2 0 0"
