"""What an output may not show, and which of its lines may be broken."""

from __future__ import annotations

import pytest

from atlas.checks import SMALL_TYPE, TOO_LONG, choose_style, find_traces, is_prose


@pytest.mark.parametrize(
    "output",
    [
        "<MulBackward0 object at 0x7f2a0ef090b0>",
        "<function f at 0x7F2A0E>",
        "two lines\n<object object at 0x102f4c3d0>\n",
    ],
)
def test_addresses(output: str) -> None:
    (fault,) = find_traces(output)
    assert fault.startswith("a memory address: 0x")


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ('File "/home/someone/atlas/page.py", line 3', "/home/someone"),
        ("/root/.cache/torch", "/root/.cache"),
        ("wrote /tmp/tmpab12", "/tmp/tmpab12"),
        ("('/usr/lib/python3', 1)", "/usr/lib"),
        ("in=/work/someone/atlas", "/work/someone"),
        ("/Users/someone/atlas", "/Users/someone"),
        ("<td>/opt/hostedtoolcache</td>", "/opt/hostedtoolcache"),
        ("see file:///home/someone/page.html", "/home/someone"),
    ],
)
def test_paths_of_the_machine(output: str, path: str) -> None:
    assert find_traces(output) == [f"a path of this machine: {path}"]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "tensor(0.25, grad_fn=<MulBackward0>)",
        "0x1F is 31, 0xFFFF is 65535",
        "torch/autograd/graph.py",
        "https://example.org/home/page and https://docs.pytorch.org/tmp/x",
        "w/home/x and ./tmp/x and ../usr/x",
        "km/h, /, //, 1/2, and/or, /homes/x",
    ],
)
def test_what_may_be_shown(output: str) -> None:
    assert find_traces(output) == []


def test_both_are_named() -> None:
    assert len(find_traces("/home/someone: <object at 0x7f2a0ef090b0>")) == 2


@pytest.mark.parametrize(
    ("line", "prose"),
    [
        ("RuntimeError: " + "long words " * 20, True),
        ("two  blanks  are  no  column " * 10, True),
        ("name    calls" + " " * 90 + "x", False),
        ("-" * 100, False),
        ("=" * 100, False),
    ],
)
def test_prose(line: str, prose: bool) -> None:
    assert len(line) > TOO_LONG
    assert is_prose(line) is prose
    assert is_prose(f"short\n{line}\nshort") is prose


@pytest.mark.parametrize(
    ("output", "classes"),
    [
        ("two words", []),
        ("RuntimeError: no", ["wrap"]),
        ("without return     TypeError: float() argument must be a string", ["wrap"]),
        ("  in a list: ValueError: no", ["wrap"]),
        ("an Error in a sentence", []),
        ("name" + " " * (TOO_LONG - 4) + "x", ["small-type"]),
        ("name" + " " * (SMALL_TYPE - 5) + "x", ["small-type"]),
        ("name" + " " * (SMALL_TYPE - 4) + "x", []),
    ],
)
def test_how_an_output_is_shown(output: str, classes: list[str]) -> None:
    """A message is never cut off on a phone, and a table of a program is whole in a wide window."""
    assert choose_style(output) == classes


def test_only_lines_that_are_too_long_count() -> None:
    assert is_prose("name    calls\n" + "long words " * 20)
