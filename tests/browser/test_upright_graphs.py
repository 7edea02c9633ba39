"""On a phone a graph's data flows from top to bottom, and the whole of it is in the window."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Locator, expect
from visiting import open_page

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


def find_card(figure: Locator, name: str) -> dict[str, float]:
    return figure.locator(f".g-card:has(.g-name:text-is('{name}')) > rect").bounding_box()


def is_below(figure: Locator, name: str, other: str) -> bool:
    above, below = find_card(figure, name), find_card(figure, other)
    return above["y"] + above["height"] < below["y"]


def list_directions(figure: Locator) -> list[bool]:
    """Whether each of four steps of the first graph goes down."""
    return [is_below(figure, *step) for step in (("x2", "a"), ("a", "y1"), ("y1", "w"), ("y2", "w"))]


def test_the_first_figure_is_whole_on_a_phone_and_plays(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, PAGE)
    figure = tab.locator(".graph-figure").first
    assert all(list_directions(figure))
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) <= 0
    assert figure.evaluate(LOOSE_ENDS) == []
    name = figure.locator(".g-name").first
    assert name.bounding_box()["height"] > 13, "in the size in which it is drawn"
    figure = tab.locator(".graph-figure").nth(1)
    for _ in range(3):
        figure.get_by_role("button", name="One step on").tap()
    expect(figure.locator(".g-active").first).to_be_in_viewport()
    assert figure.evaluate(LOOSE_ENDS) == []


def test_in_a_wide_window_data_flows_to_the_right_unless_that_is_too_wide(fresh: BrowserContext, origin: str) -> None:
    assert not any(list_directions(open_page(fresh, origin, PAGE).locator(".graph-figure").first))
    figure = open_page(fresh, origin, WIDE).locator(".graph-figure").first
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) <= 0
    assert is_below(figure, "output", "loss")
    assert figure.evaluate(LOOSE_ENDS) == []


def test_without_javascript_the_drawing_is_there_to_be_scrolled(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, PAGE)
    tab.set_viewport_size({"width": 390, "height": 844})
    figure = tab.locator(".graph-figure").first
    assert not any(list_directions(figure))
    assert figure.locator(".graph-scroll").evaluate(HIDDEN) > 0
