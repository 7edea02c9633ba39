"""A box that scrolls is a stop of the Tab key, and no other is, whatever becomes of what is in it."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import open_page

PAGE = "gallery/training/initialisation.html"


@pytest.fixture
def phone(fresh: BrowserContext, origin: str) -> Page:
    tab = open_page(fresh, origin, PAGE)
    tab.set_viewport_size({"width": 390, "height": 900})
    return tab


def resize(box: Locator, size: str) -> None:
    """What is in the box grows or shrinks, as when a font arrives; the box keeps its size."""
    box.evaluate("(box, size) => box.querySelectorAll('mtext').forEach(text => (text.style.fontSize = size))", size)


def test_a_formula_wider_than_a_phone_is_one_stop(phone: Page) -> None:
    box = phone.locator("div.math").first
    expect(box).to_have_attribute("tabindex", "0")
    assert phone.locator("math[tabindex]").count() == 0


def test_a_formula_that_grows_after_the_load_becomes_a_stop_and_is_none_after(phone: Page) -> None:
    box = phone.locator("div.math").nth(1)
    for size, stops in [("400%", "0"), ("10%", None), ("400%", "0")]:
        resize(box, size)
        if stops:
            expect(box).to_have_attribute("tabindex", stops)
        else:
            expect(box).not_to_have_attribute("tabindex", "0")


def test_a_box_fades_out_where_there_is_more(phone: Page) -> None:
    box = phone.locator("div.highlight pre[data-more]").first
    expect(box).to_have_attribute("data-more", "right")
    assert "gradient" in box.evaluate("box => getComputedStyle(box).maskImage")
    box.evaluate("box => { box.scrollLeft = 20 }")
    expect(box).to_have_attribute("data-more", "left right")
    box.evaluate("box => { box.scrollLeft = 9999 }")
    expect(box).to_have_attribute("data-more", "left")


def test_a_box_that_shows_all_does_not_fade_out(phone: Page) -> None:
    phone.set_viewport_size({"width": 1280, "height": 900})
    whole = phone.locator("div.highlight pre:not([tabindex])").first
    expect(whole).not_to_have_attribute("data-more", "right")
    assert whole.evaluate("box => getComputedStyle(box).maskImage") == "none"


def test_a_table_filtered_to_a_row_is_no_stop_until_all_are_back(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "reference/operators.html")
    box, name = tab.locator(".operators"), tab.get_by_label("Name, sign or node")
    expect(box).to_have_attribute("tabindex", "0")
    name.fill("silu")
    expect(box).not_to_have_attribute("tabindex", "0")
    name.fill("")
    expect(box).to_have_attribute("tabindex", "0")


def test_a_formula_does_not_fade_out_below(fresh: BrowserContext, origin: str) -> None:
    """Tall brackets paint below the formula's box, where there is nothing to scroll to."""
    tab = open_page(fresh, origin, PAGE)
    box = tab.locator("div.math").first
    tall = "<math display='block'><mo style='font-size: 9em; line-height: 0.2'>(</mo></math>"
    box.evaluate("(box, tall) => { box.style.height = '20px'; box.innerHTML = tall }", tall)
    tab.evaluate("() => document.fonts.dispatchEvent(new Event('loadingdone'))")
    assert box.evaluate("box => box.scrollHeight > box.clientHeight + 1")
    expect(box).not_to_have_attribute("data-more", "below")
    expect(box).not_to_have_attribute("tabindex", "0")
