"""What a reader does with a page: change its theme, copy code, reach a box that scrolls, follow a path; and parts of pages
that once looked wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import open_page, until

FIRST, FORMULAS = "gallery/graphs/first_graph.html", "gallery/training/initialisation.html"


def find_colors(tab: Page) -> dict[str, str]:
    run_script(tab, "settle")
    return run_script(tab, "listGraphColors")


def read_style(tab: Page, part: str, name: str) -> str:
    return tab.locator(part).first.evaluate("(part, name) => getComputedStyle(part)[name]", name)


# -- Themes ---------------------------------------------------------------------------------------


def test_the_theme_button_turns_the_graphs_colors(origin: str, window: Callable[[str], BrowserContext]) -> None:
    dark = find_colors(open_page(window("dark"), origin, FIRST))
    tab = open_page(window("light"), origin, FIRST)
    light = find_colors(tab)
    while tab.evaluate("document.body.dataset.theme") != "dark":
        tab.locator(".theme-toggle:visible").first.click()
    assert find_colors(tab) == dark
    assert all(light[part] != dark[part] for part in light)


def test_a_page_that_is_turned_looks_as_one_that_was_opened_so(
    origin: str, window: Callable[[str], BrowserContext]
) -> None:
    """``looking.inspect_page`` opens each page in one theme, and turns it to the other."""
    tabs = [open_page(window(opened), origin, FIRST) for opened in ("dark", "light")]

    def list_looks() -> list[list[str]]:
        for tab in tabs:
            tab.emulate_media(color_scheme="dark")
            run_script(tab, "settle")
        return [run_script(tab, "listLooks") for tab in tabs]

    # deferred scripts may still add to one of them
    until(tabs[0], lambda: len({*map(tuple, list_looks())}) == 1, list_looks)
    output = tabs[0].locator(".sphx-glr-script-out .highlight").first
    assert output.evaluate("box => getComputedStyle(box).backgroundColor") == "rgba(0, 0, 0, 0)", "one border"


# -- Code -----------------------------------------------------------------------------------------


def test_a_copy_button_is_seen_when_a_key_reaches_it(opened: Callable[[str], Page]) -> None:
    tab = opened(FIRST)
    button = tab.locator("button.copybtn").first
    assert button.evaluate("button => getComputedStyle(button).opacity") == "0"
    for _ in range(80):
        tab.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    expect(button).to_be_focused()
    run_script(tab, "settle")
    look = button.evaluate("button => [getComputedStyle(button).opacity, getComputedStyle(button).outlineStyle]")
    assert look == ["1", "solid"]


# -- A box that scrolls is a stop of the Tab key, and fades out where there is more; no other is one --------------


@pytest.fixture
def narrow(opened: Callable[[str], Page]) -> Page:
    tab = opened(FORMULAS)
    tab.set_viewport_size({"width": 390, "height": 900})
    return tab


def expect_stop(box: Locator, is_stop: bool) -> None:
    (expect(box).to_have_attribute if is_stop else expect(box).not_to_have_attribute)("tabindex", "0")


def test_a_formula_is_a_stop_while_it_is_wider_than_a_phone(narrow: Page) -> None:
    expect_stop(narrow.locator("div.math").first, True)
    assert narrow.locator("math[tabindex]").count() == 0
    box = narrow.locator("div.math").nth(1)
    box.scroll_into_view_if_needed()  # a phone lays out what is near
    for size, is_stop in [("400%", True), ("10%", False)]:  # as when a font arrives; the box keeps its size
        box.evaluate(
            "(box, size) => box.querySelectorAll('mtext').forEach(text => (text.style.fontSize = size))", size
        )
        expect_stop(box, is_stop)


def test_a_formula_does_not_fade_out_below(opened: Callable[[str], Page]) -> None:
    """Tall brackets paint below the formula's box, where there is nothing to scroll to."""
    tab = opened(FORMULAS)
    box = tab.locator("div.math").first
    tall = "<math display='block'><mo style='font-size: 9em; line-height: 0.2'>(</mo></math>"
    box.evaluate("(box, tall) => { box.style.height = '20px'; box.innerHTML = tall }", tall)
    tab.evaluate("() => document.fonts.dispatchEvent(new Event('loadingdone'))")
    assert box.evaluate("box => box.scrollHeight > box.clientHeight + 1")
    expect(box).not_to_have_attribute("data-more", "below")
    expect_stop(box, False)


def test_a_box_fades_out_where_there_is_more(narrow: Page) -> None:
    box = narrow.locator("div.highlight pre[data-more]").first
    expect(box).to_have_attribute("data-more", "right")
    assert "gradient" in box.evaluate("box => getComputedStyle(box).maskImage")
    for left, more in [(20, "left right"), (9999, "left")]:
        box.evaluate("(box, left) => { box.scrollLeft = left }", left)
        expect(box).to_have_attribute("data-more", more)
    narrow.set_viewport_size({"width": 1280, "height": 900})
    whole = narrow.locator("div.highlight pre:not([tabindex])").first
    expect(whole).not_to_have_attribute("data-more", "right")
    assert whole.evaluate("box => getComputedStyle(box).maskImage") == "none"


def test_a_table_that_scrolls_with_the_page_is_no_stop(opened: Callable[[str], Page]) -> None:
    tab = opened("reference/operators.html")
    for name in ("", "silu", ""):
        tab.get_by_label("Name, sign or node").fill(name)
        expect_stop(tab.locator(".operators"), False)


# -- Parts of pages -------------------------------------------------------------------------------


def test_the_profilers_table_is_whole(opened: Callable[[str], Page]) -> None:
    tables = opened("gallery/profiling/profiler_table.html").locator(
        ".sphx-glr-script-out pre", has_text="# of Calls"
    )
    assert tables.count()
    assert all(tables.evaluate_all("tables => tables.map(table => table.scrollWidth <= table.clientWidth + 1)"))


def test_formulas_have_their_font_on_the_first_visit_and_their_lines(opened: Callable[[str], Page]) -> None:
    tab = opened(FIRST)
    assert tab.locator('link[rel="preload"][as="font"]').count() == 1
    fonts = "[...document.fonts].filter(font => font.status === 'loaded').map(font => font.family)"
    assert tab.evaluate(fonts) == ["Atlas Math"]
    assert tab.locator("math .braced").count() == 2
    assert read_style(tab, "math .braced", "borderBottomStyle") == "solid"
    assert "\u23df" not in tab.locator("article").inner_text()


# -- A learning path: Next leads to its next page -----------------------------------------------------------


def test_next_follows_the_path_until_it_is_left(opened: Callable[[str], Page]) -> None:
    tab = opened(paths := "guide/learning-paths.html")
    path = tab.locator("section", has=tab.get_by_role("heading", name="Fine-tuning a model")).last
    links = path.locator(".card-title a")
    pages = links.evaluate_all("links => links.map(({ href, textContent }) => [href, textContent])")
    links.nth(len(pages) - 3).click()
    card = tab.locator(".next-page")
    for address, title in [*pages[-2:], (tab.url.partition("gallery")[0] + paths, "All learning paths")]:
        expect(card.locator(".context")).to_have_text("Next in Fine-tuning a model")
        expect(card.locator(".title")).to_have_text(title)
        tab.reload()
        card.click()
        tab.wait_for_url(address)
    tab.go_back()
    expect(card.locator(".title")).to_have_text("All learning paths")
    last, origin = tab.url, tab.url.partition("gallery")[0]
    for others, said in (([FIRST], "Next in Fine-tuning a model"), ([FIRST, "index.html"], "Next")):
        for other in others:
            tab.goto(origin + other)
        tab.goto(last)
        expect(card.locator(".context")).to_have_text(said)
