"""A lesson answers first: a box below its title, then the problem and the idea, then what people get wrong, and no plumbing."""

from __future__ import annotations

import copy
import re
import statistics
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from markup import code_cells, read, text_of
from sources import lessons

LESSONS = lessons()
LONGEST = 1100  # words of prose on one page
MEDIAN = 900  # of all lessons
MISTAKES = "What people get wrong"
IDEA = 0.25  # of a page, or of its half that needs no GPU, stands before its mistakes
ALL_MISTAKES = "debugging/silent_mistakes.py"  # a page of nothing else
_NOT_READ = (
    "details, script, svg, figcaption, p.leads-on, .graph-bar, .graph-now, .sphx-glr-download-link-note, .sphx-glr-footer, "
    "p.claims"
)
#: Lines that lay out what is shown, and are not about PyTorch.
_PLUMBING = re.compile(
    r"print\(f?['\"].*[:,{]|textwrap|catch_warnings|simplefilter|\bpd\.|\bpandas\b|\bplt\.|\bax\b|\baxes\b|\bfig\b|\bfigure\b"
)


def lesson(page: BeautifulSoup) -> Tag:
    """The article as a reader sees it before any fold is opened, without what stands at its foot."""
    article = copy.copy(page.select_one("article"))
    for part in article.select(_NOT_READ):
        part.decompose()
    return article


def prose(article: Tag) -> str:
    """The sentences of a lesson: paragraphs and items of lists, code and outputs left out."""
    found = [part for part in article.find_all(["p", "li"]) if not part.find_parent(["li", "table", "pre"])]
    return " ".join(text_of(part) for part in found)


def words(text: str) -> int:
    return len(text.split())


def place_of_the_mistakes(article: Tag) -> float:
    """Which part of the lesson's words stands before the section on mistakes, from 0 to 1; 1 without such a section."""
    heading = next((h2 for h2 in article.find_all("h2") if text_of(h2) == MISTAKES), None)
    if heading is None:
        return 1.0
    end = article.select_one(".provenance")  # where the half begins that needs a GPU
    whole = " ".join(end.find_all_previous(string=True)) if end else article.get_text(" ")
    return words(" ".join(heading.find_all_previous(string=True))) / words(whole)


def plumbing(article: Tag) -> tuple[int, int]:
    """How many of the code's lines lay out what is shown, and how many lines there are."""
    lines = [line for cell in code_cells(article) for line in cell.get_text().splitlines() if line.strip()]
    return sum(bool(_PLUMBING.search(line)) for line in lines), len(lines)


def page_of(site: Path, script: str) -> BeautifulSoup:
    return read(site / "gallery" / Path(script).with_suffix(".html"))


@cache
def lesson_of_page(site: Path, script: str) -> Tag:
    """``lesson`` of a page, which copies it: once."""
    return lesson(page_of(site, script))


@pytest.mark.parametrize("lesson_of", LESSONS)
def test_the_answer_is_below_the_title(site: Path, lesson_of: str) -> None:
    heading = page_of(site, lesson_of).select_one("article h1")
    box = heading.find_next_sibling(True)
    assert "in-short" in box.get("class", [])
    assert 20 <= words(prose(box)) <= 90


@pytest.mark.parametrize("lesson_of", LESSONS)
def test_the_idea_comes_before_the_mistakes_and_the_page_is_short(site: Path, lesson_of: str) -> None:
    article = lesson_of_page(site, lesson_of)
    assert place_of_the_mistakes(article) >= IDEA or lesson_of == ALL_MISTAKES
    headings = [text_of(heading) for heading in article.find_all("h2")]
    assert headings[0] != MISTAKES and "Exercise" in headings[headings.index(MISTAKES) :]
    assert words(prose(article)) <= LONGEST


def test_half_of_the_lessons_are_shorter_still(site: Path) -> None:
    assert statistics.median(words(prose(lesson_of_page(site, script))) for script in LESSONS) <= MEDIAN


def test_code_is_about_pytorch_and_not_about_layout(site: Path) -> None:
    found = [plumbing(lesson_of_page(site, script)) for script in LESSONS]
    assert sum(lines for lines, _ in found) <= 0.15 * sum(all_lines for _, all_lines in found)
