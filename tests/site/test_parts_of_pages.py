"""Parts that some pages have: learning paths, the scope at the foot, texts of links, lines beside a graph, its style sheet."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.page_weight import COSTLY, SHEET, UNUSED, join_sheets
from markup import read
from sources import GENERATED, ROOT

# -- Learning paths --------------------------------------------------------------------------------


def test_each_path_is_six_to_ten_pages_and_each_says_what_it_answers(site: Path) -> None:
    page = read(site / "guide/learning-paths.html")
    paths, items = page.select("ol.path"), page.select("ol.path > li")
    assert len(paths) == len(page.select("article h2")) == 5
    assert all(6 <= len(path.select(":scope > li")) <= 10 for path in paths)
    assert all(len(item.select_one(".card-answer").get_text()) > 20 for item in items)
    assert all(item.select_one(".card-small").get_text().endswith(" min") for item in items)
    assert read(site / "index.html").select('article a[href="guide/learning-paths.html"]')


# -- Lines beside a graph --------------------------------------------------------------------------


def read_figures(page: BeautifulSoup) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Of each figure, by the key of a card, the line that its note says, and the first of those that are lit for it."""
    for figure in page.select("figure.graph-figure:has(> script)"):
        notes = json.loads(figure.div.find("script").string)["cards"]
        made = json.loads(figure.find("script", recursive=False).string)["made_by"]
        said = {key: dict(map(tuple, note))["made by"] for key, note in notes.items() if key in made}
        yield (
            said,
            {key: read_line(page, block, first) for key, (block, first, last) in made.items() if first <= last},
        )


def read_line(page: BeautifulSoup, block: str, number: int) -> str:
    return page.find(id=block).pre.get_text().split("\n")[number - 1].removeprefix(">>> ").strip()


def test_the_line_that_is_lit_is_the_one_that_the_run_noted(site: Path, all_pages: list[str]) -> None:
    count = 0
    for page in all_pages:
        for said, lit in read_figures(read(site / page)):
            count += len(said)
            assert said.keys() == lit.keys(), page
            assert [key for key in said if not lit[key].startswith(said[key].removesuffix(" …"))] == [], page
    assert count > 250


# -- The style sheet -------------------------------------------------------------------------------


def test_no_page_uses_a_class_without_rules(site: Path, all_pages: list[str]) -> None:
    used = defaultdict(set)
    for name in all_pages:
        for classes in set(re.findall(r'\bclass="([^"]*)"', (site / name).read_text(encoding="utf-8"))):
            for found in filter(UNUSED.fullmatch, classes.split()):
                used[found].add(name)
    where = "\n".join(f"{found}: {', '.join(sorted(pages)[:3])}" for found, pages in sorted(used.items()))
    assert not used, f"take these classes out of UNUSED in conf/atlas/page_weight.py:\n{where}"


_SHEETS = "pygments styles/furo mystnb.* copybutton sg_gallery sphinx-design.min graph atlas"


@pytest.mark.parametrize("sheet", _SHEETS.split(" "))
def test_it_has_the_rules_of_each_sheet_as_the_build_has_left_it(site: Path, sheet: str) -> None:
    """An extension may write its sheet after the pages, as furo does with the colors of code."""
    (path,) = (site / "_static").glob(f"{sheet}.css")
    rules = join_sheets({"_static/sheet.css": path.read_text(encoding="utf-8")}).strip()
    assert rules and rules in (site / SHEET).read_text(encoding="utf-8")


def test_no_rule_of_the_theme_styles_a_page_twice(site: Path) -> None:
    theme, sheet = ((site / path).read_text(encoding="utf-8") for path in ("_static/styles/furo.css", SHEET))
    assert [costly for costly in COSTLY if costly not in theme or costly in sheet] == []


# -- Sources and pages -----------------------------------------------------------------------------


def test_each_source_has_its_page_and_no_other_is_there(site: Path, all_pages: list[str]) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts}
    moves = ROOT / "docs/moved-pages.txt"
    moved = {line.split()[0] for line in moves.read_text(encoding="utf-8").splitlines()} if moves.is_file() else set()
    assert not set(all_pages) - built
    assert not built - set(all_pages) - moved, "left over from an earlier build, run 'rm -rf build'"
    home = read(site / "index.html").select_one("link[rel=canonical]")["href"].removesuffix("index.html")
    named = re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text(encoding="utf-8"))
    assert {address.removeprefix(home) for address in named} == set(all_pages) - GENERATED
    listed = (ROOT / "docs/published-pages.txt").read_text(encoding="utf-8").split()
    assert listed and not [address for address in listed if not (site / address).is_file()]
