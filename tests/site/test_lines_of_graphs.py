"""Beside each card of a graph figure stands the line that made it, and the line of the page that is lit for it is that one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup

from markup import read


def figures(page: BeautifulSoup) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Of each figure, by the key of a card, the line that its note says, and the first of those that are lit for it."""
    for figure in page.select("figure.graph-figure:has(> script)"):
        notes = json.loads(figure.div.find("script").string)["cards"]
        made = json.loads(figure.find("script", recursive=False).string)["made_by"]
        said = {key: dict(map(tuple, note))["made by"] for key, note in notes.items() if key in made}
        yield said, {key: _line(page, block, first) for key, (block, first, last) in made.items() if first <= last}


def _line(page: BeautifulSoup, block: str, number: int) -> str:
    return page.find(id=block).pre.get_text().split("\n")[number - 1].removeprefix(">>> ").strip()


def test_the_line_that_is_lit_is_the_one_that_the_run_noted(site: Path, page: str) -> None:
    for said, lit in figures(read(site / page)):
        assert said.keys() == lit.keys()
        assert [key for key in said if not lit[key].startswith(said[key].removesuffix(" …"))] == []


def test_there_are_such_lines(site: Path, all_pages: list[str]) -> None:
    examples = [page for page in all_pages if page.startswith("gallery/")]
    assert sum(len(said) for page in examples for said, _ in figures(read(site / page))) > 250
