"""A page about an error that lacks a part of its form is named, with the part."""

from __future__ import annotations

import pytest
from docutils import nodes

from atlas.checks import error_page

MESSAGE = "it went wrong"
CELLS = ["try:\n    y += 1\n    y.backward()\nexcept ...", "y = y + 1  # a new tensor\ny.backward()\n"]
DIFF = "- y += 1\n+ y = y + 1\n  y.backward()"


def page(
    diff: str = DIFF, not_this: str = "Not this:", output: str = f"RuntimeError: {MESSAGE}. A hint."
) -> nodes.document:
    """A page with a box and an output; what is empty is left out."""
    document = nodes.document(None, None)
    box = nodes.admonition(classes=["in-short"])
    if diff:
        box += nodes.literal_block(diff, diff, language="diff")
    if not_this:
        box += nodes.paragraph("", "", nodes.strong("", not_this))
    document += [nodes.title("", MESSAGE), box]
    if output:
        document += nodes.literal_block(output, output, classes=["sphx-glr-script-out"])
    return document


def test_a_page_with_all_parts_is_good() -> None:
    assert list(error_page.faults(page(), CELLS)) == []


@pytest.mark.parametrize(
    ("made", "cells", "says"),
    [
        (page(diff=""), CELLS, "the box has no '.. code-block:: diff'"),
        (page(not_this=""), CELLS, "begin a paragraph with '**Not this:**'"),
        (page(not_this="But not"), CELLS, "begin a paragraph with '**Not this:**'"),
        (page(output=""), CELLS, "the first output is not the message of the title"),
        (page(output="RuntimeError: something else"), CELLS, "the first output is not the message of the title"),
        (page(diff="- y += 1"), CELLS, "a diff has 2 to 8 lines"),
        (page(diff="  y.backward()\n  y.backward()"), CELLS, "a diff has 2 to 8 lines"),
        (page(), ["", CELLS[1]], "'y += 1' is in the diff and not in the first code cell"),
        (page(), CELLS[:1], "'y = y + 1' is in the diff and in no code cell after the first"),
        (page(), [CELLS[0], "y = y + 1"], "'y.backward()' is in the diff and in no code cell after the first"),
    ],
)
def test_what_is_missing_is_said(made: nodes.document, cells: list[str], says: str) -> None:
    assert [fault for fault in error_page.faults(made, cells) if says in fault]


@pytest.mark.parametrize(
    ("quoted", "number"), [(f"RuntimeError: {MESSAGE}.", 0), ("RuntimeError: something else", 1)]
)
def test_a_message_that_cannot_be_raised_here_is_quoted(quoted: str, number: int) -> None:
    made = page(output="RuntimeError: what a CPU says")
    made += nodes.literal_block(quoted, quoted, classes=["quoted-message"])
    assert len(list(error_page.faults(made, CELLS))) == number


def test_a_page_without_a_box_is_said_to_have_none() -> None:
    document = nodes.document(None, None)
    document += nodes.title("", MESSAGE)
    (fault,) = error_page.faults(document, CELLS)
    assert fault.startswith("there is no box")
