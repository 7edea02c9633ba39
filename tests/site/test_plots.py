"""Plots use the colours of the palette, so that they can be read on a dark page too."""

from __future__ import annotations

import re
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from markup import read

_USED = re.compile(r"var\(--plot-([0-9a-f]{6})")
_SAID = re.compile(r"--plot-([0-9a-f]{6}):")


def strange(page: BeautifulSoup, known: set[str]) -> set[str]:
    """The colours in a page's plots that have no counterpart on a dark page. A plot on paper needs none."""
    plots: list[Tag] = page.select("svg.plot:not(.plot-on-paper)")
    return {colour for plot in plots for colour in _USED.findall(str(plot))} - known


def known(site: Path) -> set[str]:
    return set(_SAID.findall((site / "_static" / "plot.css").read_text(encoding="utf-8")))


def test_colours_are_of_the_palette(site: Path, page: str) -> None:
    found = strange(read(site / page), known(site))
    assert not found, (
        f"conf/static/plot.css names nothing for {sorted(found)} on a dark page; use the palette's colours"
    )


def test_a_strange_colour_is_found() -> None:
    page = '<svg class="plot"><path style="fill: var(--plot-2563eb, #2563eb); stroke: var(--plot-123456, #123456)"/></svg>'
    assert strange(BeautifulSoup(page, "html.parser"), {"2563eb"}) == {"123456"}
    on_paper = page.replace('"plot"', '"plot plot-on-paper"')
    assert not strange(BeautifulSoup(on_paper, "html.parser"), {"2563eb"})
