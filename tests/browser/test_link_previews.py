"""What a link leads to, shown beside it: by pointer and by keyboard, taken away by Escape, and never on touch."""

from __future__ import annotations

from collections.abc import Callable

import axe
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import Visit, open_page

GLOSSARY = "reference/glossary.html"
LONGER_THAN_THE_REST = 1200  # milliseconds


@pytest.fixture
def tab(opened: Callable[[str], Page]) -> Page:
    return opened(GLOSSARY)


def find_note(tab: Page) -> Locator:
    return tab.get_by_role("tooltip")


def find_leaf(tab: Page) -> Locator:
    return tab.locator("article a[href='#term-leaf']").first


def reach_by_keyboard(tab: Page, link: Locator) -> None:
    """Put the focus on the link before, and press the key that leads on: so the browser knows that it came by keyboard."""
    before = "link => [...document.querySelectorAll('article a')].filter(a => a.tabIndex >= 0)"
    link.evaluate(f"link => {{ const all = ({before})(link); all[all.indexOf(link) - 1].focus(); }}")
    tab.keyboard.press("Tab")


def expect_nothing(tab: Page) -> None:
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(find_note(tab)).to_be_hidden()


def test_a_pointer_that_rests_on_a_link_sees_what_is_there(tab: Page, visit: Visit) -> None:
    link, note = find_leaf(tab), find_note(tab)
    link.hover()
    expect(note).to_contain_text("leaf 叶子节点")
    expect(note).to_contain_text("no recorded operation computed it")
    assert link.get_attribute("aria-describedby") == note.get_attribute("id")
    note.hover()
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(note).to_be_visible()
    tab.mouse.move(0, 0)
    expect(note).to_be_hidden()
    assert link.get_attribute("aria-describedby") is None
    link.hover()
    expect(note).to_be_visible()
    tab.keyboard.press("Escape")
    expect_nothing(tab)
    assert not visit.errors + visit.other_sites


def test_who_only_crosses_a_link_or_points_elsewhere_sees_nothing(tab: Page, visit: Visit) -> None:
    find_leaf(tab).hover()
    tab.mouse.move(0, 0)
    expect_nothing(tab)
    tab.locator(".sidebar-tree a.reference.internal").first.hover()
    expect_nothing(tab)
    assert "link-previews.js" not in visit.files
    tab.locator("article h2").hover()
    tab.locator("article h2 .headerlink").hover()
    expect_nothing(tab)


def test_by_keyboard_until_escape_or_the_next_link(tab: Page) -> None:
    reach_by_keyboard(tab, find_leaf(tab))
    expect(find_leaf(tab)).to_be_focused()
    expect(find_note(tab)).to_contain_text("A tensor without grad_fn")
    tab.mouse.move(1270, 890)  # where nothing is: what the focus asked for does not go with the pointer
    tab.wait_for_timeout(LONGER_THAN_THE_REST)
    expect(find_note(tab)).to_contain_text("A tensor without grad_fn")
    tab.keyboard.press("Tab")
    expect(find_note(tab)).to_contain_text("non-leaf")
    tab.keyboard.press("Escape")
    expect(find_note(tab)).to_be_hidden()
    expect(tab.locator("article a[href='#term-non-leaf']").first).to_be_focused()


def test_a_link_to_another_page_shows_its_title_and_description(opened: Callable[[str], Page]) -> None:
    tab = opened("guide/which-switch.html")
    links = "article a.reference.internal[href$='first_graph.html'], article a[href*='first_graph.html#']"
    tab.locator(links).first.hover()
    expect(find_note(tab)).to_contain_text("What is a computation graph in PyTorch? While you compute")


def test_a_finger_gets_the_link_and_no_note(phone: BrowserContext, origin: str, visit: Visit) -> None:
    tab = open_page(phone, origin, GLOSSARY, visit)
    box = find_leaf(tab).bounding_box()
    finger = [{"x": box["x"] + 5, "y": box["y"] + 5}]
    touch = phone.new_cdp_session(tab)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": finger})
    expect_nothing(tab)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    find_leaf(tab).tap()
    tab.wait_for_url("**#term-leaf")
    expect_nothing(tab)
    assert "link-previews.js" not in visit.files


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_and_it_is_within_the_window(
    window: Callable[[str], BrowserContext], origin: str, theme: str
) -> None:
    tab = open_page(window(theme), origin, GLOSSARY)
    for width in (1280, 390):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.reload()  # what a phone lays out later has not been measured since the window was wide
        for link in ("a[href='#term-leaf']", "a[href='#term-engine']"):
            reach_by_keyboard(tab, tab.locator(f"article {link}").first)
            expect(find_note(tab)).to_be_visible()
            box = find_note(tab).bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
        axe.inject(tab)
        assert axe.color_faults(tab, axe.Looks()) + axe.faults(tab) == []
