"""What a reader does with the search: opens it, types, pastes, uses keys alone, a phone, an address that is dead."""

from __future__ import annotations

import random
from collections.abc import Callable

import axe
import pytest
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Page, expect
from visiting import FIRST, Visit, open_page

from search import pastes

MESSAGE = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.FloatTensor [3]], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead."
)


@pytest.mark.parametrize("keys", ["Control+k", "Meta+k", "/"])
def test_keys_open_it_and_escape_closes_it(tab: Page, keys: str) -> None:
    tab.keyboard.press(keys)
    box = tab.get_by_role("combobox")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    expect(tab.get_by_role("option")).to_have_count(7)
    tab.keyboard.type("leaf")
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog.search-dialog")).to_be_hidden()


def test_what_is_typed_while_it_loads_is_not_lost(tab: Page) -> None:
    tab.locator(".sidebar-search").press_sequentially("retain_grad")
    expect(tab.get_by_role("combobox")).to_have_value("retain_grad")


def test_enter_before_it_is_loaded_leads_to_the_page_of_the_search(tab: Page) -> None:
    tab.route("**/search-index.js", lambda route: None)  # it never comes
    tab.locator(".sidebar-search").fill("retain_grad")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html?q=retain_grad", wait_until="commit")


def test_by_keyboard_alone_to_a_part_of_a_page(tab: Page, visit: Visit) -> None:
    tab.keyboard.press("/")
    expect(tab.get_by_role("combobox")).to_be_focused()
    tab.keyboard.type("retain_grad")
    options = tab.get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    tab.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    assert tab.get_by_role("combobox").get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    tab.keyboard.press("ArrowDown")
    wanted = options.first.get_attribute("href")
    with tab.expect_navigation():
        tab.keyboard.press("Enter")
    assert tab.url == wanted and not visit.errors + visit.other_sites


def test_results_follow_each_key_and_fetch_the_index_and_no_page(tab: Page, visit: Visit) -> None:
    tab.wait_for_load_state("networkidle")
    before = {*visit.files}
    assert before and not [name for name in before if "search-index" in name or "search_engine" in name]
    tab.keyboard.press("Control+k")
    expect(tab.get_by_role("combobox")).to_be_focused()
    for key in "gradcheck":
        tab.keyboard.press(key)
        expect(tab.get_by_role("option").first).to_be_visible()
    expect(tab.get_by_role("option").first).to_contain_text("gradcheck")
    fetched = {name.rpartition("/")[2] for name in visit.files - before}
    assert fetched == {"search-index.js", "search.css", "search_dialog.js", "search_engine.js"}
    assert not visit.errors + visit.other_sites


def test_a_message_has_a_card_for_its_page_or_its_part_or_no_card(tab: Page) -> None:
    chance = random.Random(15)
    paste = pastes.traceback("RuntimeError", pastes.reworded(MESSAGE, chance), chance)
    assert len(paste.splitlines()) > 15
    tab.keyboard.press("/")
    run_script(tab.get_by_role("combobox"), "pasteText", paste)
    card = tab.locator(".search-card")
    expect(card).to_have_count(1)
    assert card.get_attribute("href").endswith("gallery/errors/modified_in_place.html")
    for part in ("This message", "modified by an inplace operation", "Fix:"):
        expect(card).to_contain_text(part)
    tab.get_by_role("combobox").fill("AssertionError: No inf checks were recorded for this optimizer.")
    assert card.get_attribute("href").endswith("#no-inf-checks-were-recorded-for-this-optimizer")
    tab.get_by_role("combobox").fill("KeyError: 'labels'")
    expect(tab.get_by_role("status")).to_contain_text("No page has this message.")
    expect(card).to_have_count(0)


@pytest.mark.parametrize("address", ["", "gallery/errors/index.html", "search.html"])
def test_a_box_on_a_page_answers_below_it(opened: Callable[[str], Page], address: str, visit: Visit) -> None:
    tab = opened(address)
    box = tab.locator(".search-here textarea")
    box.fill(f'Traceback (most recent call last):\n  File "a.py", line 2\nRuntimeError: {MESSAGE}')
    card = tab.locator(".search-results a").first
    expect(card).to_contain_text("This message")
    box.press("Enter")
    tab.wait_for_url("**/gallery/errors/modified_in_place.html")
    assert not visit.errors + visit.other_sites


def test_an_address_with_a_question_shows_results_that_mark_nothing_on_their_pages(
    opened: Callable[[str], Page],
) -> None:
    tab = opened("search.html?q=retian_graph")
    expect(tab.locator(".search-here textarea")).to_have_value("retian_graph")
    expect(tab.locator(".search-results a").first).to_contain_text("retain_graph")
    tab.locator(".search-results a").first.click()
    tab.wait_for_url(lambda url: "search.html" not in url)
    tab.wait_for_load_state("networkidle")
    assert tab.locator("article mark, article .highlighted").count() == 0


def test_an_address_that_is_dead_offers_the_nearest_pages(opened: Callable[[str], Page]) -> None:
    tab = opened("gallery/old/leaf_tensors.html")
    expect(tab.locator(".search-here textarea")).to_have_value("leaf tensors")
    links = tab.locator(".search-results a")
    expect(links).to_have_count(3)
    assert [link for link in links.all() if link.get_attribute("href").endswith("/leaves_and_roots.html")]


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1280, "dark")])
def test_axe_finds_nothing_in_the_open_dialog(
    window: Callable[[str], BrowserContext], origin: str, width: int, theme: str
) -> None:
    tab = open_page(window(theme), origin, FIRST)
    tab.set_viewport_size({"width": width, "height": 844})
    if width == 390:
        tab.locator(".search-open").click()
    else:
        tab.keyboard.press("Control+k")
    tab.get_by_role("combobox").fill(f"RuntimeError: {MESSAGE}")
    expect(tab.get_by_role("option").first).to_be_visible()
    axe.inject(tab)
    assert axe.faults(tab) + axe.color_faults(tab, axe.Looks()) == []
