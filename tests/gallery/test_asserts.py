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


@pytest.mark.parametrize(
    ("script", "number"), [(IN_A_THREAD, 2), (IN_A_POOL, 1), ("x = 1\nfor x in range(9):\n    assert x < 9\n", 1)]
)
def test_asserts_count_in_every_thread(count: Count, script: str, number: int) -> None:
    assert count(script) == f".. claims:: {number} 0 0"


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


def test_asserts_count_in_threads_that_python_did_not_start(count: Count) -> None:
    assert count(IN_A_FOREIGN_THREAD) == ".. claims:: 1 0 0"


def test_an_assert_that_no_thread_reached_is_named(count: Count) -> None:
    with pytest.raises(PageFault, match=r"page\.py:10: this assert never ran"):
        count(HALF)


def test_an_assert_under_a_condition_on_the_version_has_a_way_out(count: Count) -> None:
    with pytest.raises(PageFault, match="write an else with an assert of what holds there"):
        count("import torch\nif torch.__version__.startswith('1.'):\n    assert True\n")


def test_a_traceback_shows_no_frame_of_ours(count: Count) -> None:
    """And the line of the script; the source around it is what the author wrote."""
    with pytest.raises(AssertionError) as raised:
        count("x = 1\nassert x == 2, 'x is one'\n")
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [(Path(frame.filename).name, frame.lineno) for frame in frames][-1] == ("page.py", 6)
    assert len([frame for frame in frames if frame.filename.endswith("page.py")]) == 1


def test_the_running_line_is_kept(count: Count) -> None:
    """That of the script's own lines, not of what they call: it is the line at which a hanging script is stopped."""
    seen, memory = [], bytearray(8)

    def look() -> None:
        seen.append(int.from_bytes(memory, "little"))

    count("look()\ndef f():\n    look()\n\nf()\nfor x in [1]:\n    look()\n", memory, look=look)
    assert seen == [5, 9, 11]


def test_a_future_statement_stays_first(count: Count) -> None:
    assert count("from __future__ import annotations\nassert True\n") == ".. claims:: 1 0 0"
