"""The list of errors: folded and short, filtered by words, and whole without JavaScript."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import new_tab, open_page

PAGE = "gallery/errors/index.html"
SHOWN = ".symptoms li:visible"


@pytest.fixture
def listed(fresh: BrowserContext, origin: str) -> Page:
    return open_page(fresh, origin, PAGE)


def test_it_is_short_on_a_phone(listed: Page) -> None:
    listed.set_viewport_size({"width": 390, "height": 844})
    assert listed.locator(SHOWN).count() == 0
    assert listed.evaluate("document.documentElement.scrollHeight") < 3 * 844


def test_the_filter_keeps_what_has_all_words(listed: Page) -> None:
    all_pages = listed.locator(".symptoms li").count()
    listed.get_by_label("Filter the list").fill("Batch, size")
    texts = listed.locator(SHOWN).all_text_contents()
    assert texts and all("batch" in text.lower() and "size" in text.lower() for text in texts)
    expect(listed.locator(".filter output")).to_have_text(f"{len(texts)} of {all_pages} pages")
    listed.get_by_label("Filter the list").fill("")
    expect(listed.locator(".filter output")).to_have_text(f"{all_pages} of {all_pages} pages")
    assert listed.locator(SHOWN).count() == 0


def test_a_group_without_a_page_left_is_not_shown(listed: Page) -> None:
    listed.get_by_label("Filter the list").fill("no page has these words")
    assert listed.locator(".symptoms details:visible").count() == 0


def test_without_javascript_a_group_is_unfolded(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/{PAGE}")
        tab.locator("summary", has_text="Backward fails").click()
        expect(
            tab.get_by_role("link", name="Trying to backward through the graph a second time").last
        ).to_be_visible()
