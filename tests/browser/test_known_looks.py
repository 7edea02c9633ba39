"""A look that passed is not asked for again, and nothing bad hides behind it: what may change the verdict is in the look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import axe
import pytest
from playwright.sync_api import Browser, Page
from visiting import new_tab

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<style>body {{ background: #fff; color: #000; font: 16px sans-serif; margin: 20px; }} p {{ margin: 0 0 8px; }}
.grey {{ color: #666 }} .pale {{ color: #ccc }}</style>
</head><body><main><article>{}</article></main></body></html>"""

#: Each look passes three times and more.
GOOD = (
    """
<p style="color: #666">Grey words on white</p>
<div style="background: #222; padding: 8px"><p style="color: #bbb">Pale words on a dark box</p></div>
<button disabled style="color: #bbb; background: #fff; border: 0">Cannot be pressed</button>
<p style="color: #767676">Words more than the link: a <a href="#x" style="color: #000; text-decoration: none">link</a></p>
<p>Words more than the link: a <a href="#y" style="color: #00f">blue link</a></p>
<p style="color: #222">Words without a link</p>
<p style="color: #ccc">4</p>
<pre style="margin: 20px">a <span class="grey">token</span> and a <span class="grey">token</span></pre>
"""
    * 4
)
LINK = '<a href="#x" style="color: #000; text-decoration: none">link</a>'

#: What differs from something good in one thing.
BAD = {
    "another box around it": (
        "color-contrast",
        '<div style="background: #777"><p style="color: #666">Grey words on white</p></div>',
    ),
    "a box moved under it": (
        "color-contrast",
        '<div style="background: #777; height: 40px"></div><p style="color: #666; margin-top: -30px">Grey words on white</p>',
    ),
    "out of its box": (
        "color-contrast",
        '<div style="background: #222; padding: 8px 8px 0; height: 0"><p style="color: #bbb; padding-top: 20px">'
        "Pale words on a dark box</p></div>",
    ),
    "a veil over all": (
        "color-contrast",
        '<div style="opacity: 0.4"><p style="color: #666">Grey words on white</p></div>',
    ),
    "a shadow": (
        "color-contrast",
        '<p style="color: #666; text-shadow: 0 0 4px #666, 0 0 4px #666">Grey words on white</p>',
    ),
    "can be pressed": (
        "color-contrast",
        '<button style="color: #bbb; background: #fff; border: 0">Cannot be pressed</button>',
    ),
    "longer than a sign": ("color-contrast", '<p style="color: #ccc">Forty-two</p>'),
    "another text around the link": (
        "link-in-text-block",
        f'<p style="color: #222">Words more than the link: a {LINK}</p>',
    ),
    "a link without its line": (
        "link-in-text-block",
        '<p>Words more than the link: a <a href="#y" style="color: #00f; text-decoration: none">blue link</a></p>',
    ),
    "a word of code of another class": (
        "color-contrast",
        '<pre><span class="grey">token</span> <span class="pale">token</span></pre>',
    ),
    "a word of code with a style": (
        "color-contrast",
        '<pre><span class="grey">token</span> <span class="grey" style="color: #ccc">token</span></pre>',
    ),
    "a word of code in another box": (
        "color-contrast",
        '<pre><span class="grey">token</span> <b style="background: #777">in <span class="grey">token</span></b></pre>',
    ),
    "a box moved under some of the code": (
        "color-contrast",
        '<div style="background: #777; margin-left: 300px; height: 40px"></div>'
        f'<pre style="margin-top: -30px"><span class="grey">token</span>{" " * 40}<span class="grey">token</span></pre>',
    ),
}

Ask = Callable[[str, axe.Looks], list[str]]


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context, closing(new_tab(context)) as tab:
        yield tab


@pytest.fixture
def ask(tab: Page) -> Ask:
    """The rules that a page breaks."""

    def rules(content: str, looks: axe.Looks) -> list[str]:
        tab.set_content(PAGE.format(content))
        axe.inject(tab)
        return [rule for rule, _ in axe.color_faults(tab, looks)]

    return rules


@pytest.fixture
def known(ask: Ask) -> axe.Looks:
    """What is known after a good page."""
    looks = axe.Looks()
    assert ask(GOOD, looks) == []
    return looks


def test_what_has_passed_three_times_is_not_asked_for_again(ask: Ask, known: axe.Looks) -> None:
    ask(GOOD.partition("<button")[0], known)
    asked = known.asked
    ask(GOOD.partition("<button")[0], known)
    assert asked > 0 and known.asked == asked


@pytest.mark.parametrize("what", BAD)
def test_a_bad_element_does_not_hide_behind_a_good_look(ask: Ask, known: axe.Looks, what: str) -> None:
    rule, element = BAD[what]
    assert rule in ask(element, axe.Looks()), "it is bad by itself"
    assert rule in ask(GOOD + element, known)


def test_what_is_bad_is_found_on_each_page(ask: Ask) -> None:
    looks = axe.Looks()
    _, element = BAD["another box around it"]
    assert [ask(element * 4, looks) for _ in range(3)] == [["color-contrast"] * 3] * 3


AWAY = (
    '<div style="overflow: auto; width: 60px" tabindex="0"><p style="color: #ccc; margin-left: 200px">Away</p></div>'
)


def test_what_is_scrolled_away_is_asked_for_last(ask: Ask) -> None:
    """Axe says nothing of it, and of one look it is asked three times."""
    assert ask(AWAY * 3 + '<p style="color: #ccc">Here</p>', axe.Looks()) == ["color-contrast"]


def test_what_axe_says_nothing_of_does_not_count(ask: Ask) -> None:
    looks = axe.Looks()
    assert ask(AWAY * 3, looks) == [] and looks.asked == 3
    assert ask('<p style="color: #ccc">Here</p>', looks) == ["color-contrast"]
