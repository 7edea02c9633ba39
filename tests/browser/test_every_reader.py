"""Pages of each type with large text, without JavaScript and on paper; and a way through the site, to the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from looking import LARGEST_SHIFT
from page_scripts import run_script
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import FIRST, open_page, too_wide

from atlas.pages import read_pages

CHAPTERS = read_pages().chapters

#: One page of each type.
TYPES = [
    "index.html",
    "guide/which-switch.html",
    "gallery/index.html",
    "gallery/graphs/index.html",
    FIRST,
    "gallery/tensors/copy_table.html",
    "gallery/errors/backward_twice.html",
    "gallery/cuda/devices.html",
    "reference/operators.html",
    "reference/glossary.html",
    "reference/names.html",
    "then-and-now.html",
    "genindex.html",
    "search.html?q=leaf",
]


@pytest.mark.parametrize("page_", TYPES)
def test_text_of_twice_the_size_fits(large_text: Browser, origin: str, page_: str) -> None:
    with large_text.new_context(viewport={"width": 1280, "height": 900}) as context:
        tab = open_page(context, origin, page_)
        assert tab.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
        for width in (1280, 640):
            tab.set_viewport_size({"width": width, "height": 900})
            assert not too_wide(tab)
            expect(tab.locator("article h1").first).to_be_in_viewport()


@pytest.mark.parametrize("page_", [page for page in TYPES if "search" not in page])
def test_without_javascript_it_can_be_read(scriptless: BrowserContext, origin: str, page_: str) -> None:
    tab = open_page(scriptless, origin, page_)
    expect(tab.locator("article h1").first).to_be_visible()
    assert tab.locator("article :is(p, li):visible").first.inner_text().strip()
    for fold in tab.locator("article details").all()[:2]:
        fold.locator("summary").first.press("Enter")  # a click is lost where the page still moves under the mouse
        expect(fold).to_have_attribute("open", "")


@pytest.mark.parametrize("page_", [FIRST, "reference/operators.html"])
def test_text_beside_the_contents_list_stays_where_it_is(opened: Callable[[str], Page], page_: str) -> None:
    tab = opened("404.html")
    tab.set_viewport_size({"width": 1600, "height": 900})
    slow = {"offline": False, "latency": 20, "downloadThroughput": 40_000, "uploadThroughput": 40_000}
    tab.context.new_cdp_session(tab).send("Network.emulateNetworkConditions", slow)  # the list comes after the text
    tab.goto(tab.url.replace("404.html", page_))
    expect(tab.locator(".toc-drawer")).to_be_in_viewport()
    shifts = run_script(tab, "listShifts")
    assert sum(value for value, _ in shifts) < LARGEST_SHIFT, shifts


@pytest.mark.parametrize("page_", [FIRST, "reference/operators.html"])
def test_on_paper_there_is_the_text_and_nothing_else(opened: Callable[[str], Page], page_: str) -> None:
    tab = opened(page_)
    tab.emulate_media(media="print")
    expect(tab.locator("article h1").first).to_be_visible()
    for part in (".sidebar-drawer", ".toc-drawer", ".graph-bar", ".filter", ".copybtn"):
        assert not tab.locator(f"{part}:visible").count(), part
    assert not run_script(tab, "listStamps"), "what is fixed to the window stands on every sheet"


def test_paper_is_light_in_each_theme(origin: str, window: Callable[[str], BrowserContext]) -> None:
    parts = {
        "gallery/memory/checkpointing.html": ["svg.plot path"],
        FIRST: [".g-card rect", ".g-name", ".g-gradient", "article p", "div.highlight pre"],
    }
    read = "parts => parts.slice(0, 20).map(part => [getComputedStyle(part).fill, getComputedStyle(part).color])"

    def list_colors(theme: str) -> list[list[str]]:
        found = []
        for page, names in parts.items():
            tab = open_page(window(theme), origin, page)
            tab.emulate_media(media="print", color_scheme=theme)
            found += [tab.locator(name).evaluate_all(read) for name in names]
        return found

    assert list_colors("light") == list_colors("dark")


def test_from_the_front_page_through_the_first_chapter_on_a_phone(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, "index.html")
    tab.locator(".card-title a:has-text('Computation graphs')").tap()
    tab.locator(".card-title a").first.tap()
    tab.wait_for_url("**/first_graph.html")
    read = []
    while "/graphs/" in tab.url:
        read.append(tab.locator("article h1").inner_text())
        assert not too_wide(tab), tab.url
        with tab.expect_navigation():
            tab.locator(".related-pages .next-page").tap()
        assert len(read) <= len(CHAPTERS["graphs"]), read
    assert len(read) == len(CHAPTERS["graphs"]) and "differentiation" in tab.url
