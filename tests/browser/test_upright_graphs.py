"""On a phone a graph's data flows from top to bottom, and the whole of it is in the window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visiting import new_tab, open_page

PAGE = "gallery/graphs/first_graph.html"
WIDE = "gallery/training/training_loop.html"
#: How far a drawing runs out of its box.
HIDDEN = "box => box.scrollWidth - box.clientWidth"
#: Every end of an edge, with its distance from the border of its card, in pixels of the window.
LOOSE_ENDS = """figure => {
  const cards = new Map([...figure.querySelectorAll("[data-card] rect")].map(card => [card.parentElement.dataset.card, card]));
  return [...figure.querySelectorAll("[data-edge]")].flatMap(edge => {
    const path = edge.querySelector("path"), toWindow = path.getScreenCTM();
    const begin = path.getPointAtLength(0).matrixTransform(toWindow);
    const tip = edge.querySelector("polygon").points[0].matrixTransform(toWindow);
    const far = (point, card) => {
      const {left, right, top, bottom} = card.getBoundingClientRect();
      const out = [left - point.x, point.x - right, top - point.y, point.y - bottom];
      return Math.abs(Math.max(...out));
    };
    return [far(begin, cards.get(edge.dataset.from)), far(tip, cards.get(edge.dataset.to))];
  }).filter(distance => distance > 2);
}"""


@pytest.fixture
def phone(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as context:
        yield context


def at(figure: Locator, name: str) -> dict[str, float]:
    return figure.locator(f".g-card:has(.g-name:text-is('{name}')) > rect").bounding_box()


def flow(figure: Locator) -> list[str]:
    """Which way each of the four steps of the first graph goes."""
    places = {name: at(figure, name) for name in ("x2", "a", "y1", "y2", "w")}
    steps = [("x2", "a"), ("a", "y1"), ("y1", "w"), ("y2", "w")]
    return [
        "down"
        if places[one]["y"] + places[one]["height"] < places[other]["y"]
        else "right"
        if places[one]["x"] + places[one]["width"] < places[other]["x"]
        else "neither"
        for one, other in steps
    ]


def test_the_first_figure_is_whole_on_a_phone(phone: BrowserContext, origin: str) -> None:
    figure = open_page(phone, origin, PAGE).locator(".graph-figure").first
    assert flow(figure) == ["down"] * 4
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) <= 0
    assert figure.evaluate(LOOSE_ENDS) == []
    name = figure.locator(".g-name").first
    assert name.bounding_box()["height"] > 13, "in the size in which it is drawn"


def test_in_a_wide_window_data_flows_to_the_right(fresh: BrowserContext, origin: str) -> None:
    figure = open_page(fresh, origin, PAGE).locator(".graph-figure").first
    assert flow(figure) == ["right"] * 4


def test_a_graph_too_wide_for_a_page_stands_upright_in_any_window(fresh: BrowserContext, origin: str) -> None:
    figure = open_page(fresh, origin, WIDE).locator(".graph-figure").first
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) <= 0
    assert at(figure, "output")["y"] + at(figure, "output")["height"] < at(figure, "loss")["y"]
    assert figure.evaluate(LOOSE_ENDS) == []


def test_it_plays_on_a_phone(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, PAGE)
    figure = tab.locator(".graph-figure").nth(1)
    for _ in range(3):
        figure.get_by_role("button", name="One step on").tap()
    expect(figure.locator(".g-active").first).to_be_in_viewport()
    assert figure.evaluate(LOOSE_ENDS) == []


def test_without_javascript_the_drawing_is_there_to_be_scrolled(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844}) as context:
        tab: Page = new_tab(context)
        tab.goto(f"{origin}/{PAGE}")
        figure = tab.locator(".graph-figure").first
        assert flow(figure) == ["right"] * 4
        assert figure.locator(".graph-scroll").evaluate(HIDDEN) > 0
