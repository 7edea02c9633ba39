"""What a reader does with a page: change its theme, copy code, open a solution, follow a link that is dead."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from page_scripts import SETTLE
from playwright.sync_api import BrowserContext, Page, expect
from visiting import Visit, open_page

#: The colors of every element that a page shows. Copy buttons, clear until they are pointed at, keep the old theme's color.
LOOK_OF_ALL = """() => [...document.body.querySelectorAll("*")].map(box => {
  if (!box.checkVisibility({opacityProperty: true})) return box.localName;
  const {color, fill, backgroundColor, display, filter} = getComputedStyle(box);
  return [box.localName, color, fill, backgroundColor, display, filter].join();
})"""
FIRST = "gallery/graphs/first_graph.html"


def colours(tab: Page) -> dict[str, str]:
    """The colours that matter in the first graph of a page."""
    return tab.evaluate("""() => ({
      name: getComputedStyle(document.querySelector(".graph text.g-name")).fill,
      card: getComputedStyle(document.querySelector(".graph .g-card rect")).fill,
      page: getComputedStyle(document.body).backgroundColor,
    })""")


def test_the_theme_button_turns_the_graphs_colours(origin: str, window: Callable[[str], BrowserContext]) -> None:
    preferred = open_page(window("dark"), origin, FIRST)
    preferred.evaluate(SETTLE)
    dark = colours(preferred)
    tab = open_page(window("light"), origin, FIRST)
    light = colours(tab)
    while tab.evaluate("document.body.dataset.theme") != "dark":
        tab.locator(".theme-toggle:visible").first.click()
    tab.evaluate(SETTLE)
    assert colours(tab) == dark
    assert all(light[part] != dark[part] for part in light)


def test_a_page_that_is_turned_looks_as_one_that_was_opened_so(
    origin: str, window: Callable[[str], BrowserContext]
) -> None:
    """``looking.inspect`` opens each page in one theme, and turns it to the other."""
    tabs = [open_page(window(opened), origin, FIRST) for opened in ("dark", "light")]
    deadline = time.monotonic() + 60
    while True:
        looks = []
        for tab in tabs:
            tab.emulate_media(color_scheme="dark")
            tab.evaluate(SETTLE)
            looks.append(tab.evaluate(LOOK_OF_ALL))
        if looks[0] == looks[1] or time.monotonic() > deadline:  # deferred scripts may still add to one of them
            break
    assert looks[0] == looks[1]


def test_the_copied_code_is_the_code_that_is_shown(fresh: BrowserContext, origin: str) -> None:
    fresh.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    tab = open_page(fresh, origin, FIRST)
    cell = tab.locator("div.highlight:not(.sphx-glr-script-out div.highlight)").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert "torch.tensor(2.0, requires_grad=True)" in copied
    assert copied.strip() == cell.locator("pre").inner_text().strip()


def test_a_copy_button_is_seen_when_a_key_reaches_it(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, FIRST)
    button = tab.locator("button.copybtn").first
    assert button.evaluate("button => getComputedStyle(button).opacity") == "0"
    for _ in range(80):
        tab.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    expect(button).to_be_focused()
    tab.evaluate(SETTLE)
    look = button.evaluate("button => [getComputedStyle(button).opacity, getComputedStyle(button).outlineStyle]")
    assert look == ["1", "solid"]


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_solution_opens_by_keyboard(fresh: BrowserContext, origin: str, key: str) -> None:
    tab = open_page(fresh, origin, FIRST)
    fold = tab.locator("details.solution").first
    expect(fold.locator("p").first).to_be_hidden()
    summary = fold.locator("summary")
    summary.focus()
    expect(summary).to_be_focused()
    tab.keyboard.press(key)
    expect(fold.locator("p").first).to_be_visible()


@pytest.mark.parametrize("address", ["gone.html", "gallery/gone/deeper.html"])
def test_a_dead_address_shows_the_sites_own_page(fresh: BrowserContext, origin: str, address: str) -> None:
    visit = Visit()
    tab = open_page(fresh, origin, address, visit)
    expect(tab.get_by_role("heading", level=1)).to_have_text("Page not found")
    refused = [error for error in visit.errors if error.startswith("404")]
    assert refused == [f"404 for {origin}/{address}"], "the page's own styles and scripts are found from any address"
    tab.locator(".sidebar-brand").click()
    expect(tab).to_have_url(f"{origin}/index.html")
