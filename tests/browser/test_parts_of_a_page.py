"""Parts of a page that once looked wrong."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page
from visiting import open_page


def style(tab: Page, part: str, name: str) -> str:
    return tab.locator(part).first.evaluate("(part, name) => getComputedStyle(part)[name]", name)


def test_the_profilers_table_is_whole(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "gallery/profiling/profiler_table.html")
    tables = tab.locator(".sphx-glr-script-out pre", has_text="# of Calls")
    assert tables.count()
    assert all(tables.evaluate_all("tables => tables.map(table => table.scrollWidth <= table.clientWidth + 1)"))


def test_what_is_said_of_a_recording_stands_off_its_bar(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "gallery/cuda/devices.html")
    assert style(tab, ".provenance", "paddingLeft") == "12px"


def test_an_output_has_one_border_in_the_dark(origin: str, window: Callable[[str], BrowserContext]) -> None:
    tab = open_page(window("dark"), origin, "gallery/graphs/first_graph.html")
    assert style(tab, ".sphx-glr-script-out .highlight", "backgroundColor") == "rgba(0, 0, 0, 0)"


def test_formulas_have_their_font_on_the_first_visit(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "gallery/graphs/first_graph.html")
    assert tab.locator('link[rel="preload"][as="font"]').count() == 1
    assert tab.evaluate("[...document.fonts].filter(font => font.status === 'loaded').map(font => font.family)") == [
        "Atlas Math"
    ]


def test_a_line_below_a_term_is_as_long_as_the_term(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "gallery/graphs/first_graph.html")
    assert tab.locator("math .braced").count() == 2
    assert style(tab, "math .braced", "borderBottomStyle") == "solid"
    assert "\u23df" not in tab.locator("article").inner_text()
