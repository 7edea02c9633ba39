"""A page that was read to its end gets a tick, which stays in the browser until the reader forgets it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import Visit, new_tab, open_page, until

CHAPTER = "gallery/graphs/index.html"
PAGE = "gallery/graphs/first_graph.html"
KEPT = "localStorage.getItem('atlas-read')"
TICKED = ".card.is-read"


def read_to_the_end(tab: Page) -> None:
    tab.locator(".sphx-glr-footer").scroll_into_view_if_needed()
    until(tab, lambda: tab.evaluate(KEPT) is not None, lambda: "nothing is kept")


def test_a_page_is_read_when_its_end_was_seen(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, PAGE)
    tab.mouse.wheel(0, 900)
    until(tab, lambda: tab.evaluate("scrollY > 500"), lambda: "the page did not scroll")
    assert tab.evaluate(KEPT) is None
    read_to_the_end(tab)
    assert tab.evaluate(f"JSON.parse({KEPT})") == [PAGE]


def test_the_chapter_shows_it_and_forgets_it(fresh: BrowserContext, origin: str) -> None:
    visit = Visit()
    tab = open_page(fresh, origin, CHAPTER, visit)
    expect(tab.locator(TICKED)).to_have_count(0)
    expect(tab.get_by_role("button", name="Forget")).to_be_hidden()
    number = tab.locator(".card").count()
    tab.goto(f"{origin}/{PAGE}")
    read_to_the_end(tab)
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
    assert not visit.errors + visit.other_sites


def test_it_forgets_the_pages_of_its_own_chapter_only(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, CHAPTER)
    other = "gallery/memory/precision.html"
    tab.evaluate("kept => localStorage.setItem('atlas-read', JSON.stringify(kept))", [PAGE, other])
    tab.reload()
    tab.get_by_role("button", name="Forget").click()
    assert tab.evaluate(f"JSON.parse({KEPT})") == [other]


def test_other_lists_show_it_too(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "index.html")
    error = "gallery/errors/no_grad_fn.html"
    tab.evaluate("kept => localStorage.setItem('atlas-read', JSON.stringify(kept))", [PAGE, error])
    tab.reload()
    expect(tab.locator(".card", has_text="Computation graphs").locator(".card-small")).to_contain_text("1 read")
    tab.goto(f"{origin}/gallery/errors/index.html")
    expect(tab.locator(".symptoms li.is-read")).to_have_count(1)
    tab.goto(f"{origin}/gallery/index.html")
    expect(tab.locator(".tagged li.is-read")).to_have_count(2)


def test_a_page_in_two_learning_paths_counts_once(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "guide/learning-paths.html")
    twice = "gallery/debugging/silent_mistakes.html"
    tab.evaluate("kept => localStorage.setItem('atlas-read', JSON.stringify(kept))", [twice])
    tab.reload()
    expect(tab.locator(".path > li.is-read")).to_have_count(2)
    expect(tab.get_by_role("status")).to_contain_text("You have read 1 of ")


@pytest.mark.parametrize("kept", ["no JSON", "7", '{"a": 1}'])
def test_what_another_program_wrote_does_no_harm(fresh: BrowserContext, origin: str, kept: str) -> None:
    visit = Visit()
    tab = open_page(fresh, origin, CHAPTER, visit)
    tab.wait_for_load_state("networkidle")  # the tab's icon comes last; to leave before is noted as an error
    tab.evaluate("kept => localStorage.setItem('atlas-read', kept)", kept)
    tab.reload()
    expect(tab.get_by_role("status")).to_contain_text("gets a tick")
    assert not visit.errors


def test_a_browser_that_keeps_nothing_shows_the_page(fresh: BrowserContext, origin: str) -> None:
    # of our script alone: furo's own stops at a storage that is closed
    fresh.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem']) {"
        " const own = Storage.prototype[name];"
        " Storage.prototype[name] = function (key, ...more) {"
        " if (key === 'atlas-read') throw new DOMException('no'); return own.call(this, key, ...more); } }"
    )
    visit = Visit()
    tab = open_page(fresh, origin, CHAPTER, visit)
    expect(tab.get_by_role("status")).to_contain_text("gets a tick")
    assert not visit.errors


def test_without_javascript_there_is_no_tick_and_no_button(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/{CHAPTER}")
        assert tab.locator(".card").count() > 5
        assert not tab.locator(".read-pages button, .tick").count()


def test_nothing_moves_when_the_line_comes(fresh: BrowserContext, origin: str) -> None:
    tab = new_tab(fresh)
    tab.add_init_script(
        "window.moved = 0; new PerformanceObserver(all => { for (const one of all.getEntries()) window.moved += one.value; })"
        ".observe({ type: 'layout-shift', buffered: true })"
    )
    tab.goto(f"{origin}/{CHAPTER}", wait_until="load")
    expect(tab.get_by_role("status")).to_be_visible()
    assert tab.evaluate("window.moved") < 0.01
