"""The pages of the site and the contents of a page, by keyboard: behind buttons where there is little room, else in sight."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from page_scripts import run_script
from playwright.sync_api import Browser, Page, expect
from visiting import FIRST, open_page

DRAWERS = {"Toggle site navigation sidebar": ".sidebar-drawer", "Toggle table of contents sidebar": ".toc-drawer"}


@pytest.fixture
def narrow(browser: Browser, origin: str) -> Iterator[Page]:
    """A window of 1280 pixels at twice the size."""
    with browser.new_context(viewport={"width": 640, "height": 400}, device_scale_factor=2) as context:
        yield open_page(context, origin, FIRST)


def test_a_closed_drawer_takes_no_focus(narrow: Page) -> None:
    for _ in range(25):
        narrow.keyboard.press("Tab")
        left, right, is_shown = run_script(narrow, "findFocus")
        assert is_shown and left >= 0 and right <= 640, narrow.evaluate("document.activeElement.outerHTML")[:100]


@pytest.mark.parametrize("name", DRAWERS)
def test_a_drawer_opens_and_closes_by_keyboard_and_by_a_click_beside_it(narrow: Page, name: str) -> None:
    button, drawer = narrow.get_by_role("button", name=name), narrow.locator(DRAWERS[name])
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(drawer).to_be_hidden()
    button.focus()
    narrow.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(drawer.locator(":focus")).to_be_in_viewport()
    narrow.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(drawer).to_be_hidden()
    button.click()
    expect(drawer.locator("a:visible").first).to_be_in_viewport()
    narrow.mouse.click(320, 380)
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(drawer).to_be_hidden()


def test_the_contents_of_a_page_are_in_sight(tab: Page) -> None:
    tab.set_viewport_size({"width": 1280, "height": 900})
    expect(tab.locator("button.toc-content-icon")).to_be_in_viewport()
    for width in (1600, 1920):
        tab.set_viewport_size({"width": width, "height": 900})
        expect(tab.locator(".toc-drawer a:visible").first).to_be_in_viewport(ratio=1)
        expect(tab.locator(".toc-content-icon")).to_be_hidden()
        expect(tab.locator("article h1")).to_be_in_viewport(ratio=1)
        boxes = [tab.locator(part).bounding_box() for part in (".sidebar-drawer", "article", ".toc-drawer")]
        assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes))
        assert boxes[1]["width"] >= 900, "figures are as wide as anywhere"
