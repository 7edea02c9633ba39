"""Every example has a page with outputs, a figure, its sections and the number of its checks, and the index leads to it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup

from atlas.gallery.scripts import split_at_mark
from markup import FIGURES, OUTPUTS, read, text_of

SECTIONS = ["What people get wrong", "Exercise", "See also"]
SECTIONS_OF_AN_ERROR = ["The code that raises it", "Why", "The fix", "See also"]  # what not to do is in its box
OF_A_RUN = ["an output", "a figure", "the number of its checks"]


def page_of(script: str) -> str:
    return f"gallery/{Path(script).with_suffix('.html').as_posix()}"


def sections_of(script: str) -> list[str]:
    """The sections that the page of ``chapter/name.py`` must have: a page about an error is looked up, not worked through."""
    return SECTIONS_OF_AN_ERROR if script.startswith("errors/") else SECTIONS


def missing_parts(page: BeautifulSoup, sections: list[str]) -> list[str]:
    """The parts that an example's page must have, and this one lacks."""
    found = []
    if not any(text_of(output) for output in page.select(OUTPUTS)):
        found.append(OF_A_RUN[0])
    if not page.select(FIGURES):
        found.append(OF_A_RUN[1])
    if stated_checks(page) is None:
        found.append(OF_A_RUN[2])
    headings = [text_of(heading) for heading in page.find_all("h2")]
    return found + [name for name in sections if name not in headings]


def stated_checks(page: BeautifulSoup) -> int | None:
    """The number of asserts that the page says it has passed."""
    sentence = page.select_one("p.claims")
    number = re.match(r"One\b|\d+\b", text_of(sentence)) if sentence else None
    return number and (1 if number[0] == "One" else int(number[0]))


def asserts(script: Path, page: BeautifulSoup) -> int:
    """How many asserts of a script have run for its page: if it says that its second half has not, those of the first."""
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(split_at_mark(text)[0] if page.select(".not-recorded") else text)
    return len({node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)})


def reached(site: Path, start: str) -> set[str]:
    """All pages that links lead to from ``start``."""
    seen, waiting = set(), [start]
    while waiting:
        page = waiting.pop()
        if page in seen or not (site / page).is_file():
            continue
        seen.add(page)
        links = [urlsplit(urljoin(page, link["href"])) for link in read(site / page).select("a[href]")]
        waiting += [
            link.path for link in links if not link.scheme and not link.netloc and link.path.endswith(".html")
        ]
    return seen


def test_the_page_is_complete_and_counts_all_its_checks(site: Path, root: Path, script: str) -> None:
    page = read(site / page_of(script))
    assert missing_parts(page, sections_of(script)) == []
    assert stated_checks(page) == asserts(root / "examples" / script, page)


def test_the_index_leads_to_every_example(site: Path, all_scripts: list[str]) -> None:
    assert not set(map(page_of, all_scripts)) - reached(site, "index.html")


def test_a_long_table_is_shown_whole(site: Path, root: Path) -> None:
    """Each call that the page names has its row."""
    page = read(site / "reference/shapes.html")
    source = (root / "docs/reference/shapes.md").read_text(encoding="utf-8")
    lines = re.search(r'CALLS = parse\("""(.*?)"""\)', source, re.DOTALL)[1].strip().splitlines()
    calls = [call for line in lines for call in line.partition(":")[2].split(";")]
    longest = max((table.select("tbody > tr") for table in page.select(".cell_output table")), key=len)
    assert len(longest) == len(calls) and "..." not in [text_of(row.th) for row in longest]
