"""The list of all pages: filtered by tags, from the keyboard too, with an address that keeps the filter, and whole without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import new_tab, open_page

PAGE = "gallery/index.html"
SHOWN = ".tagged li:visible"


@pytest.fixture
def listed(fresh: BrowserContext, origin: str) -> Page:
    return open_page(fresh, origin, PAGE)


def tags_of_shown(tab: Page) -> list[list[str]]:
    return [text.split(" · ") for text in tab.locator(f"{SHOWN} p + p").all_text_contents()]


def test_pages_have_all_tags_that_are_chosen_and_the_address_keeps_them(listed: Page) -> None:
    number = listed.locator(".tagged li").count()
    listed.get_by_label("error").check()
    listed.get_by_label("in-place").check()
    expect(listed).to_have_url(re.compile(r"\?tag=in-place&tag=error$"))
    shown = tags_of_shown(listed)
    assert 0 < len(shown) < number and all({"error", "in-place"} <= set(tags) for tags in shown)
    expect(listed.locator(".tagged output")).to_have_text(f"{len(shown)} of {number} pages")
    assert listed.locator(".tagged .chapter:visible").count() == 1
    listed.reload()
    assert tags_of_shown(listed) == shown
    listed.get_by_role("button", name="Show all").click()
    expect(listed).to_have_url(re.compile(r"index\.html$"))
    assert listed.locator(SHOWN).count() == number


def test_a_tag_that_would_leave_nothing_cannot_be_chosen(listed: Page) -> None:
    listed.get_by_label("error").check()
    expect(listed.get_by_label("hooks")).to_be_disabled()
    expect(listed.get_by_label("shapes")).to_be_enabled()


def test_it_is_used_from_the_keyboard(listed: Page) -> None:
    listed.get_by_label("beginner").focus()
    listed.keyboard.press("Tab")
    listed.keyboard.press("Space")
    expect(listed).to_have_url(re.compile(r"\?tag=graph$"))
    assert all("graph" in tags for tags in tags_of_shown(listed))


def test_a_page_leads_to_those_with_its_tag(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "gallery/functions/exp_function.html")
    tab.locator("p.leads-on").get_by_role("link", name="custom Function", exact=True).click()
    expect(tab.get_by_label("custom Function")).to_be_checked()
    assert {"custom Function"} <= set.intersection(*map(set, tags_of_shown(tab)))


def test_a_tag_that_is_none_shows_all(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, f"{PAGE}?tag=no-such-tag")
    assert tab.locator(SHOWN).count() == tab.locator(".tagged li").count()


def test_without_javascript_the_list_is_whole(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/{PAGE}")
        assert tab.locator(SHOWN).count() == tab.locator(".tagged li").count() > 100


def test_nothing_moves_when_the_script_comes(fresh: BrowserContext, origin: str) -> None:
    """The filter takes its room before its script has run."""
    chapter = "document.querySelector('.tagged .chapter').getBoundingClientRect().top"
    with_script = open_page(fresh, origin, PAGE).evaluate(chapter)
    fresh.route("**/tags.js*", lambda route: route.abort())
    assert open_page(fresh, origin, PAGE).evaluate(chapter) == with_script
