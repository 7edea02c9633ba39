"""A page that was read to its end gets a tick, which stays in the browser until the reader forgets it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from visiting import FIRST, Visit, open_page, until

CHAPTER = "gallery/graphs/index.html"
KEPT = "localStorage.getItem('atlas-read')"
TICKED = ".card.is-read"


def read_to_the_end(tab: Page) -> None:
    tab.locator(".sphx-glr-footer").scroll_into_view_if_needed()
    until(tab, lambda: tab.evaluate(KEPT) is not None, lambda: "nothing is kept")


def test_the_chapter_shows_it_and_forgets_it(opened: Callable[[str], Page], origin: str, visit: Visit) -> None:
    tab = opened(CHAPTER)
    expect(tab.locator(TICKED)).to_have_count(0)
    expect(tab.get_by_role("button", name="Forget")).to_be_hidden()
    number = tab.locator(".card").count()
    tab.goto(f"{origin}/{FIRST}")
    tab.mouse.wheel(0, 900)
    until(tab, lambda: tab.evaluate("scrollY > 500"), lambda: "the page did not scroll")
    assert tab.evaluate(KEPT) is None
    read_to_the_end(tab)
    assert tab.evaluate(f"JSON.parse({KEPT})") == [FIRST]
    tab.goto(f"{origin}/{CHAPTER}")
    expect(tab.locator(TICKED)).to_have_count(1)
    expect(
        tab.locator("article").get_by_role("link", name="What is a computation graph in PyTorch? (read)")
    ).to_be_visible()
    expect(tab.get_by_role("status")).to_contain_text(f"1 of {number} pages")
    tab.get_by_role("button", name="Forget").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(TICKED)).to_have_count(0)
    assert tab.evaluate(KEPT) is None
    other = "gallery/memory/precision.html"
    tab.evaluate("kept => localStorage.setItem('atlas-read', JSON.stringify(kept))", [FIRST, other])
    tab.reload()
    tab.get_by_role("button", name="Forget").click()
    assert tab.evaluate(f"JSON.parse({KEPT})") == [other], "the pages of its own chapter only"
    assert not visit.errors + visit.other_sites


def test_other_lists_show_it_too(opened: Callable[[str], Page], origin: str) -> None:
    tab = opened("index.html")
    kept = [FIRST, "gallery/errors/no_grad_fn.html", "gallery/debugging/silent_mistakes.html"]
    tab.evaluate("kept => localStorage.setItem('atlas-read', JSON.stringify(kept))", kept)
    tab.reload()
    expect(tab.locator(".card", has_text="Computation graphs").locator(".card-small")).to_contain_text("1 read")
    tab.goto(f"{origin}/gallery/errors/index.html")
    expect(tab.locator(".symptoms li.is-read")).to_have_count(1)
    tab.goto(f"{origin}/gallery/index.html")
    expect(tab.locator(".tagged li.is-read")).to_have_count(3)
    tab.goto(f"{origin}/guide/learning-paths.html")
    twice = tab.locator(".path > li.is-read", has=tab.locator("a[href$='silent_mistakes.html']"))
    expect(twice).to_have_count(2)
    read = {path.get_attribute("href") for path in tab.locator(".path > li.is-read a").all()}
    expect(tab.get_by_role("status")).to_contain_text(f"You have read {len(read)} of ")


@pytest.mark.parametrize("kept", ["no JSON", "7", '{"a": 1}'])
def test_what_another_program_wrote_does_no_harm(opened: Callable[[str], Page], visit: Visit, kept: str) -> None:
    tab = opened(CHAPTER)
    tab.wait_for_load_state("networkidle")  # the tab's icon comes last; to leave before is noted as an error
    tab.evaluate("kept => localStorage.setItem('atlas-read', kept)", kept)
    tab.reload()
    expect(tab.get_by_role("status")).to_contain_text("gets a tick")
    assert not visit.errors


def test_a_browser_that_keeps_nothing_shows_the_page(fresh: BrowserContext, origin: str, visit: Visit) -> None:
    # of our script alone: furo's own stops at a storage that is closed
    fresh.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem']) {"
        " const own = Storage.prototype[name];"
        " Storage.prototype[name] = function (key, ...more) {"
        " if (key === 'atlas-read') throw new DOMException('no'); return own.call(this, key, ...more); } }"
    )
    tab = open_page(fresh, origin, CHAPTER, visit)
    expect(tab.get_by_role("status")).to_contain_text("gets a tick")
    assert not visit.errors


def test_without_javascript_there_is_no_tick_and_no_button(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, CHAPTER)
    assert tab.locator(".card").count() > 5
    assert not tab.locator(".read-pages button, .tick").count()
