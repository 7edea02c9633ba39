"""The front page: numbers that the build counted, code that is the figure's, and a card for each chapter."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.pages import read_pages
from markup import read, text_of

CHAPTERS = read_pages().chapters

PICTURE = 4 * 1024  # compressed
WITH_MAP = [chapter for chapter in CHAPTERS if chapter != "errors"]


@pytest.fixture(scope="module")
def front(site: Path) -> BeautifulSoup:
    return read(site / "index.html")


def number(front: BeautifulSoup, page: str) -> int:
    """The number that leads to a page."""
    (link,) = front.select(f'.proof a[href="{page}"]')
    return int(link.strong.get_text().replace(",", ""))


def test_the_numbers_are_those_of_the_build(site: Path, front: BeautifulSoup, all_scripts: list[str]) -> None:
    built = json.loads((site / "build.json").read_text(encoding="utf-8"))
    said = text_of(front.select_one(".proof"))
    assert number(front, "about/how-this-site-stays-true.html") == built["checks"] > 1000
    assert f"PyTorch {built['torch'].rpartition('.')[0]}" in said
    assert number(front, "gallery/index.html") == len(all_scripts)
    assert number(front, "gallery/errors/index.html") == len(CHAPTERS["errors"])
    rows = read(site / "reference" / "operators.html").select(".operators tbody tr")
    assert number(front, "reference/operators.html") == len(rows) > 500


def test_the_expression_is_the_one_in_the_figure(front: BeautifulSoup) -> None:
    code = front.select_one(".expression pre").get_text()
    assigned = re.findall(r"^(\w+) =", code, re.MULTILINE)
    cards = [text_of(name) for name in front.select(".expression svg.graph .g-name")]
    assert sorted(assigned) == sorted(cards) == ["a", "w", "x1", "x2", "y1", "y2"]
    assert front.select_one(".expression .graph-bar")


def test_each_chapter_has_a_card_in_the_order_of_reading(site: Path, front: BeautifulSoup) -> None:
    cards = front.select(".cards > .card")
    assert [card.select_one(".card-title a")["href"] for card in cards] == [
        f"gallery/{c}/index.html" for c in CHAPTERS
    ]
    for card, pages in zip(cards, CHAPTERS.values(), strict=True):
        assert text_of(card.select_one(".card-small")).startswith(f"{len(pages)} pages · ")
        assert len(text_of(card.select_one(".card-answer"))) > 30


@pytest.mark.parametrize("page_", ["index", *(f"gallery/{chapter}/index" for chapter in WITH_MAP)])
def test_pictures_are_there_and_light(site: Path, page_: str) -> None:
    found = read(site / f"{page_}.html").select(".card .picture")
    assert found and all(picture.select("svg path, svg rect, svg image") for picture in found)
    heavy = [len(gzip.compress(str(picture).encode())) for picture in found]
    assert max(heavy) <= PICTURE
