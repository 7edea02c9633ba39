"""Each row of the page "Then and now" says what was said, what holds, and has a check that the doctests run.

The rows of its first part name the release that changed PyTorch, and where that is written. That the checks bite is seen in
``tests/then_and_now``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

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


#: How a row says when PyTorch changed. Where no page says it, it was seen in the published packages.
_SINCE = re.compile(r"Since (?P<release>\d+(?:\.\d+)+)(?: at the latest)? \((?P<source>[^()]+)\)")


def since(row: Tag) -> tuple[int, ...] | None:
    """The release from which on a row holds, if it names one and says where that is written."""
    now = row.select("dd")[1].p
    named = _SINCE.match(text_of(now))
    if not named:
        return None
    source = now.find("a")
    assert named["source"] == "published packages" or (
        source["href"].startswith("https://") and text_of(source) == named["source"]
    )
    return tuple(map(int, named["release"].split(".")))


def rows_of(page: BeautifulSoup, part: str) -> list[Tag]:
    return page.select(f"#then-and-now > #{part} > section")


def test_what_changed_names_its_release_the_newest_first(then_and_now: BeautifulSoup) -> None:
    releases = [since(row) for row in rows_of(then_and_now, "changed-since")]
    assert None not in releases
    assert releases == sorted(releases, reverse=True)


def test_what_was_never_so_names_no_release(then_and_now: BeautifulSoup) -> None:
    assert not [since(row) for row in rows_of(then_and_now, "never-so") if since(row)]


@pytest.mark.parametrize("part", ["changed-since", "never-so"])
def test_the_index_of_a_part_has_its_rows_in_their_order(then_and_now: BeautifulSoup, part: str) -> None:
    rows = rows_of(then_and_now, part)
    entries = then_and_now.select(f"#{part} > .rows-index li")
    assert [entry.a["href"] for entry in entries] == [f"#{row['id']}" for row in rows]
    releases = [text_of(entry).split(": ")[0] for entry in entries if part == "changed-since"]
    assert releases == [".".join(map(str, since(row))) for row in rows if part == "changed-since"]
