"""On a phone a graph's data flows from top to bottom, and the whole of it is in the window."""

from __future__ import annotations

from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, expect
from visiting import FIRST, find_card, open_page

WIDE = "gallery/errors/backward_twice.html"
#: How far a drawing runs out of its box.
HIDDEN = "box => box.scrollWidth - box.clientWidth"


def is_below(figure: Locator, name: str, other: str) -> bool:
    above, below = (find_card(figure, card).locator("> rect").bounding_box() for card in (name, other))
    return above["y"] + above["height"] < below["y"]


def list_directions(figure: Locator) -> list[bool]:
    """Whether each of four steps of the first graph goes down."""
    return [is_below(figure, *step) for step in (("x2", "a"), ("a", "y1"), ("y1", "w"), ("y2", "w"))]


def test_the_first_figure_is_whole_on_a_phone_and_plays(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, FIRST)
    figure = tab.locator(".graph-figure").first
    assert all(list_directions(figure))
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) <= 0
    assert run_script(figure, "listLooseEnds") == []
    name = figure.locator(".g-name").first
    assert name.bounding_box()["height"] > 13, "in the size in which it is drawn"
    figure = tab.locator(".graph-figure").nth(1)
    for _ in range(3):
        figure.get_by_role("button", name="One step on").tap()
    expect(figure.locator(".g-active").first).to_be_in_viewport()
    assert run_script(figure, "listLooseEnds") == []


def test_in_a_wide_window_data_flows_to_the_right_unless_that_is_too_wide(fresh: BrowserContext, origin: str) -> None:
    assert not any(list_directions(open_page(fresh, origin, FIRST).locator(".graph-figure").first))
    figure = open_page(fresh, origin, WIDE).locator(".graph-figure").first
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) <= 0
    assert is_below(figure, "state2", "loss2")
    assert run_script(figure, "listLooseEnds") == []


def test_without_javascript_the_drawing_is_there_to_be_scrolled(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, FIRST)
    tab.set_viewport_size({"width": 390, "height": 844})
    figure = tab.locator(".graph-figure").first
    assert not any(list_directions(figure))
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) > 0
