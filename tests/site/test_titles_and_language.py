"""Every page has one first heading, a title of its own and a language."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bs4 import BeautifulSoup

from markup import read, text_of


def faults(page: BeautifulSoup) -> list[str]:
    found = []
    headings = page.find_all("h1")
    if len(headings) != 1:
        found.append(f"{len(headings)} h1 elements: {[text_of(heading) for heading in headings]}")
    if any(not text_of(heading) for heading in headings):
        found.append("an h1 without text")
    title = page.select_one("head > title")
    if title is None or not text_of(title):
        found.append("no title")
    if page.html is None or not page.html.get("lang"):
        found.append("no language on the html element")
    return found


def test_one_heading_a_title_and_a_language(site: Path, page: str) -> None:
    found = faults(read(site / page))
    assert not found


def test_titles_differ(site: Path, all_pages: list[str]) -> None:
    titles = Counter(text_of(read(site / page).select_one("head > title")) for page in all_pages)
    assert not [title for title, times in titles.items() if times > 1]


def test_a_bare_page_is_at_fault(tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text("<html><head><title> </title></head><body><h1>One</h1><h1></h1></body></html>")
    assert faults(read(bare)) == [
        "2 h1 elements: ['One', '']",
        "an h1 without text",
        "no title",
        "no language on the html element",
    ]
