"""The learning paths: one for each kind of work, each short enough to be walked."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from markup import read

PAGE = "guide/learning-paths.html"


@pytest.fixture(scope="module")
def paths(site: Path) -> BeautifulSoup:
    return read(site / PAGE)


def test_each_is_six_to_ten_pages(paths: BeautifulSoup) -> None:
    found = paths.select("ol.path")
    assert len(found) == len(paths.select("article h2")) == 5
    assert all(6 <= len(path.select(":scope > li")) <= 10 for path in found)


def test_each_page_says_what_it_answers(paths: BeautifulSoup) -> None:
    items = paths.select("ol.path > li")
    assert all(len(item.select_one(".card-answer").get_text()) > 20 for item in items)
    assert all(item.select_one(".card-small").get_text().endswith(" min") for item in items)


def test_the_front_page_leads_there(site: Path) -> None:
    assert read(site / "index.html").select(f'article a[href="{PAGE}"]')
