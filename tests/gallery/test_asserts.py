"""Every assert that ran counts, in whatever thread it ran; one that did not run is named."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from atlas.gallery import asserts
from atlas.gallery.scripts import PageFault

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
ABOUT_ERRORS = """
try:
    1 / 0
except ZeroDivisionError as error:
    assert "zero" in str(error)
assert 1 < 2
"""
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
COUNTED = {
    "in a thread": (IN_A_THREAD, "2 0 0"),
    "in a thread that Python did not start": (IN_A_FOREIGN_THREAD, "1 0 0"),
    "in a loop, once": ("x = 1\nfor x in range(9):\n    assert x < 9\n", "1 0 0"),
    "about errors raised on purpose, apart": (ABOUT_ERRORS, "2 1 0"),
    "that the page lets fail, apart": (FAILING, "3 1 1"),
    "but no AssertionError of somebody else": (
        "try:\n    fail()\nexcept AssertionError:\n    assert True\n",
        "1 1 0",
    ),
    "after what backward refuses": (WHAT_BACKWARD_REFUSES, "2 1 0"),
    "after a future statement, which stays first": ("from __future__ import annotations\nassert True\n", "1 0 0"),
}


@pytest.fixture
def count(tmp_path: Path) -> Count:
    """Run a script as sphinx-gallery does a cell, and return what the page says of its asserts."""

    def count_asserts(text: str, memory: bytearray | None = None, **variables: Any) -> str:
        script = tmp_path / "page.py"
        script.write_text(f'"""\nA page\n======\n"""\n{text}', encoding="utf-8")
        asserts.start_watching(memory or bytearray(8), None)
        tree = ast.parse(script.read_text(encoding="utf-8"))
        del tree.body[0]  # the docstring, which is no cell
        exec(asserts.WatchedCompile()(tree, str(script), "exec"), {"__name__": "__main__", **variables})
        return asserts.report_asserts(SimpleNamespace(lineno=5), {"src_file": str(script)}).strip()

    return count_asserts


@pytest.mark.parametrize("which", COUNTED)
def test_asserts_are_counted(count: Count, which: str) -> None:
    def fail() -> None:
        raise AssertionError

    script, numbers = COUNTED[which]
    assert count(script, fail=fail) == f".. claims:: {numbers}"


def test_an_assert_that_never_ran_is_named_with_the_way_out(count: Count) -> None:
    said = r"page\.py:7: this assert never ran.* write an else with an assert of what holds there"
    with pytest.raises(PageFault, match=said):
        count("def check(number):\n    if number > 3:\n        assert number\n    assert number < 3\n\ncheck(1)\n")


def test_a_traceback_shows_no_frame_of_ours(count: Count) -> None:
    """And the line of the script; the source around it is what the author wrote."""
    with pytest.raises(AssertionError) as raised:
        count("x = 1\nassert x == 2, 'x is one'\n")
    frames = [
        frame for frame in traceback.extract_tb(raised.value.__traceback__) if Path(frame.filename) != Path(__file__)
    ]
    assert [(Path(frame.filename).name, frame.lineno) for frame in frames] == [("page.py", 6)]


def test_the_running_line_is_kept(count: Count) -> None:
    """That of the script's own lines, not of what they call: it is the line at which a hanging script is stopped."""
    seen, memory = [], bytearray(8)

    def look() -> None:
        seen.append(int.from_bytes(memory, "little"))

    count("look()\ndef f():\n    look()\n\nf()\nfor x in [1]:\n    look()\n", memory, look=look)
    assert seen == [5, 9, 11]
