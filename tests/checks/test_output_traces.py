"""What an output may not show, and which of its lines may be broken."""

from __future__ import annotations

import pytest

from atlas.checks import TOO_LONG, choose_style, find_traces, is_prose

ADDRESS, PATH = "a memory address: 0x", "a path of this machine: "
TRACES = {
    "<MulBackward0 object at 0x7f2a0ef090b0>": [ADDRESS],
    "two lines\n<object object at 0x102f4c3d0>\n": [ADDRESS],
    'File "/home/someone/atlas/page.py", line 3': [f"{PATH}/home/someone"],
    "wrote /tmp/tmpab12": [f"{PATH}/tmp/tmpab12"],
    "<td>/opt/hostedtoolcache</td>": [f"{PATH}/opt/hostedtoolcache"],
    "see file:///root/.cache/page.html": [f"{PATH}/root/.cache"],
    "/home/someone: <object at 0x7f2a0ef090b0>": [ADDRESS, f"{PATH}/home/someone"],
}


@pytest.mark.parametrize("output", TRACES)
def test_what_may_not_be_shown(output: str) -> None:
    found = sorted(find_traces(output))
    assert [fault[: len(said)] for fault, said in zip(found, TRACES[output], strict=True)] == TRACES[output]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "tensor(0.25, grad_fn=<MulBackward0>)",
        "https://example.org/home/page and https://docs.pytorch.org/tmp/x",
        "w/home/x and ./tmp/x and ../usr/x",
        "km/h, /, //, 1/2, and/or, /homes/x",
    ],
)
def test_what_may_be_shown(output: str) -> None:
    assert find_traces(output) == []


@pytest.mark.parametrize(
    ("line", "prose"),
    [
        ("RuntimeError: " + "long words " * 20, True),
        ("name    calls" + " " * 90 + "x", False),
        ("-" * 100, False),
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
        ("  in a list: ValueError: no", ["wrap"]),
        ("an Error in a sentence", []),
        ("name" + " " * (TOO_LONG - 4) + "x", ["wide"]),
    ],
)
def test_how_an_output_is_shown(output: str, classes: list[str]) -> None:
    """A message is never cut off on a phone, and a table of a program is whole in a wide window."""
    assert choose_style(output) == classes
