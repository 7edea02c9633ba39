"""Each row of the page "Then and now" says what was said, what holds, and has a check that the doctests run.

That the checks bite is seen in ``tests/then_and_now``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from markup import read, text_of
from then_and_now.older_torch import CHANGES


def incomplete(page: BeautifulSoup) -> list[str]:
    """The rows that lack one of the three, by title."""
    return [
        text_of(row.h3)
        for row in page.select("#then-and-now section section")
        if [text_of(term) for term in row.select("dt")] != ["Then", "Now"]
        or not row.select(".highlight-pycon .go, .highlight-pycon .gt")
    ]


@pytest.fixture(scope="module")
def then_and_now(site: Path) -> BeautifulSoup:
    return read(site / "then-and-now.html")


def test_every_row_is_complete(then_and_now: BeautifulSoup) -> None:
    assert not incomplete(then_and_now)
    assert len(then_and_now.select("#then-and-now section section")) == len(CHANGES)


@pytest.mark.parametrize("lost", ["dt", "dl", ".highlight-pycon", ".go"])
def test_an_incomplete_row_is_found(then_and_now: BeautifulSoup, lost: str) -> None:
    page = BeautifulSoup(str(then_and_now), "html.parser")
    row = page.select("#then-and-now section section")[7]
    row.select_one(lost).decompose()
    assert incomplete(page) == [text_of(row.h3)]
