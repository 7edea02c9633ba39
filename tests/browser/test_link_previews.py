"""What a link leads to, shown beside it: by pointer and by keyboard, taken away by Escape, and never on touch."""

from __future__ import annotations

from collections.abc import Callable

import axe
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect
from visiting import Visit, new_tab, open_page, until

GLOSSARY = "reference/glossary.html"
OTHER = "guide/which-switch.html"
LONGER_THAN_THE_REST = 1200  # milliseconds


@pytest.fixture
def visit() -> Visit:
    return Visit()


@pytest.fixture
def tab(fresh: BrowserContext, origin: str, visit: Visit) -> Page:
    return open_page(fresh, origin, GLOSSARY, visit)


def note(tab: Page) -> Locator:
    return tab.get_by_role("tooltip")


def leaf(tab: Page) -> Locator:
    return tab.locator("article a[href='#term-leaf']").first


def reach_by_keyboard(tab: Page, link: Locator) -> None:
    """Put the focus on the link before, and press the key that leads on: so the browser knows that it came by keyboard."""
    before = "link => [...document.querySelectorAll('article a')].filter(a => a.tabIndex >= 0)"
    link.evaluate(f"link => {{ const all = ({before})(link); all[all.indexOf(link) - 1].focus(); }}")
    tab.keyboard.press("Tab")


def test_a_pointer_that_rests_on_a_link_sees_what_is_there(tab: Page, visit: Visit) -> None:
    leaf(tab).hover()
    expect(note(tab)).to_contain_text("leaf 叶子节点")
    expect(note(tab)).to_contain_text("no recorded operation computed it")
    assert leaf(tab).get_attribute("aria-describedby") == note(tab).get_attribute("id")
    assert not visit.errors + visit.other_sites


def test_it_stays_while_the_pointer_is_on_it_and_goes_with_the_pointer(tab: Page) -> None:
    leaf(tab).hover()
    expect(note(tab)).to_be_visible()
    note(tab).hover()
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_be_visible()
    tab.mouse.move(0, 0)
    expect(note(tab)).to_be_hidden()
    assert leaf(tab).get_attribute("aria-describedby") is None


def test_escape_takes_it_away_from_under_a_pointer_that_rests(tab: Page) -> None:
    leaf(tab).hover()
    expect(note(tab)).to_be_visible()
    tab.keyboard.press("Escape")
    expect(note(tab)).to_be_hidden()
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_be_hidden()


def test_a_pointer_that_only_crosses_a_link_sees_nothing(tab: Page, visit: Visit) -> None:
    leaf(tab).hover()
    tab.mouse.move(0, 0)
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_be_hidden()
    assert "link-previews.js" not in visit.files


def test_who_goes_on_while_the_texts_load_sees_that_of_the_link_with_the_focus(tab: Page) -> None:
    asked: list[Route] = []
    tab.route("**/link-previews.js", lambda route: asked.append(route))
    reach_by_keyboard(tab, leaf(tab))
    until(tab, lambda: bool(asked), lambda: "nobody asked for the texts")
    tab.wait_for_timeout(100)
    asked[0].continue_()
    expect(note(tab)).to_contain_text("A tensor without grad_fn")


def test_by_keyboard_until_escape_or_the_next_link(tab: Page) -> None:
    reach_by_keyboard(tab, leaf(tab))
    expect(leaf(tab)).to_be_focused()
    expect(note(tab)).to_contain_text("A tensor without grad_fn")
    tab.mouse.move(1270, 890)  # where nothing is: what the focus asked for does not go with the pointer
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_contain_text("A tensor without grad_fn")
    tab.keyboard.press("Tab")
    expect(note(tab)).to_contain_text("non-leaf")
    tab.keyboard.press("Escape")
    expect(note(tab)).to_be_hidden()
    expect(tab.locator("article a[href='#term-non-leaf']").first).to_be_focused()


def test_a_link_to_another_page_shows_its_title_and_description(
    fresh: BrowserContext, origin: str, visit: Visit
) -> None:
    tab = open_page(fresh, origin, OTHER, visit)
    tab.locator(
        "article a.reference.internal[href$='first_graph.html'], article a[href*='first_graph.html#']"
    ).first.hover()
    expect(note(tab)).to_contain_text("What is a computation graph in PyTorch? While you compute")
    assert not visit.errors + visit.other_sites


def test_a_link_to_a_part_of_the_same_page_shows_nothing(tab: Page) -> None:
    tab.locator("article h1").hover()
    tab.locator("article h1 .headerlink").hover()
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_be_hidden()


def test_links_of_the_sidebar_show_nothing(tab: Page, visit: Visit) -> None:
    tab.locator(".sidebar-tree a.reference.internal").first.hover()
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_be_hidden()
    assert "link-previews.js" not in visit.files


def test_a_finger_gets_the_link_and_no_note(browser: Browser, origin: str, visit: Visit) -> None:
    with browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844}) as phone:
        tab = open_page(phone, origin, GLOSSARY, visit)
        box = leaf(tab).bounding_box()
        finger = [{"x": box["x"] + 5, "y": box["y"] + 5}]
        touch = phone.new_cdp_session(tab)
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": finger})
        tab.wait_for_timeout(LONGER_THAN_THE_REST)
        expect(note(tab)).to_be_hidden()
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        leaf(tab).tap()
        tab.wait_for_url("**#term-leaf")
        tab.wait_for_timeout(LONGER_THAN_THE_REST)
        expect(note(tab)).to_be_hidden()
    assert "link-previews.js" not in visit.files


def test_texts_that_do_not_come_leave_the_link_as_it_is(fresh: BrowserContext, origin: str) -> None:
    thrown: list[str] = []
    tab = new_tab(fresh)
    tab.on("pageerror", lambda error: thrown.append(error.message))
    tab.route("**/link-previews.js", lambda route: route.abort())
    tab.goto(f"{origin}/{GLOSSARY}")
    leaf(tab).hover()
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note(tab)).to_be_hidden()
    assert not thrown


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_and_it_is_within_the_window(
    window: Callable[[str], BrowserContext], origin: str, width: int, theme: str
) -> None:
    tab = open_page(window(theme), origin, GLOSSARY)
    tab.set_viewport_size({"width": width, "height": 844})
    for link in ("a[href='#term-leaf']", "a[href='#term-engine']"):
        reach_by_keyboard(tab, tab.locator(f"article {link}").first)
        expect(note(tab)).to_be_visible()
        box = note(tab).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    axe.inject(tab)
    assert axe.faults(tab) + axe.color_faults(tab, axe.Looks()) == []
