"""A leaf's number is dragged, turned with the arrow keys, or typed, and the figure follows: as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import FIGURE, FIRST, open_page, too_wide

from drawgrad.describe import format_number

FRONT, VECTOR = "index.html", "gallery/errors/unused_in_graph.html"
LIVE = "Computed in your browser"


@pytest.fixture
def tab(opened: Callable[[str], Page]) -> Page:
    return opened(FRONT)


def field(figure: Locator, name: str) -> Locator:
    return figure.get_by_role("spinbutton", name=f"Value of {name}", exact=True)


def type_number(figure: Locator, name: str, text: str) -> None:
    field(figure, name).press("Enter")
    typed = figure.get_by_role("textbox", name=f"Value of {name}", exact=True)
    typed.fill(text)
    typed.press("Enter")


def facts(figure: Locator) -> dict[str, dict[str, str]]:
    """What the note of each card says."""
    found: dict[str, Any] = figure.evaluate("figure => figure.graph.notes")
    return {note[0][1]: dict(note[1:]) for note in found.values()}


def computed(x1: float, x2: float) -> tuple[float, float, float]:
    one, two = (torch.tensor(value, requires_grad=True) for value in (x1, x2))
    w = torch.log(one * two) * torch.sin(two)
    w.backward()
    return w.item(), one.grad.item(), two.grad.item()


def shown(figure: Locator) -> tuple[float, float, float]:
    """The value of w, and both gradients; the notes say the same in fewer digits."""
    found, said = run_script(figure, "listNumbers"), facts(figure)
    numbers = found["w"][0], found["x1"][1], found["x2"][1]
    texts = said["w"]["value"], said["x1"]["gradient"], said["x2"]["gradient"].rpartition("= ")[2]
    assert texts == tuple(map(format_number, numbers))
    return numbers


def test_dragged_on_the_front_page(tab: Page, figure: Locator) -> None:
    box = field(figure, "x1").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 60, y, steps=4)  # 4 px are a step of 0.1
    expect(figure.locator(".graph-note")).not_to_be_visible()
    tab.mouse.up()
    expect(field(figure, "x1")).to_have_attribute("aria-valuetext", "3.5000")
    assert shown(figure) == pytest.approx(computed(3.5, 3.0), rel=1e-6)
    expect(figure.locator(".graph-whose")).to_contain_text(f"{LIVE}: w = 0.3318.")
    expect(figure.locator("svg.graph")).to_contain_text("grad −2.2808")


def test_turned_with_the_keys(figure: Locator) -> None:
    leaf = field(figure, "x2")
    for key in ("ArrowUp", "ArrowRight", "ArrowDown", "Shift+ArrowUp"):
        leaf.press(key)
    expect(leaf).to_be_focused()
    assert shown(figure) == pytest.approx(computed(2.0, 4.1), rel=1e-5)


def test_what_is_typed_counts_if_it_is_a_number_and_is_put_back(figure: Locator) -> None:
    before = facts(figure)
    for text in ("", "x", "3 + 4"):
        type_number(figure, "x1", text)
        expect(figure.locator(".graph-whose")).to_contain_text("The numbers are PyTorch")
    type_number(figure, "x1", "0,5")
    assert shown(figure) == pytest.approx(computed(0.5, 3.0), rel=1e-6)
    expect(figure.locator(".g-hint")).to_have_count(0)
    figure.get_by_role("button", name="Back to PyTorch’s numbers").click()
    expect(figure.locator(".graph-whose")).to_contain_text("The numbers are PyTorch")
    expect(figure.locator("svg.graph")).to_contain_text("grad −1.7268")
    assert facts(figure) == before


def test_outside_of_the_domain(figure: Locator) -> None:
    type_number(figure, "x1", "-1")
    w, x1, x2 = shown(figure)
    assert (w, x1, x2) == pytest.approx(computed(-1.0, 3.0), rel=1e-6, nan_ok=True)
    assert w != w and x2 != x2 and x1 == x1, "log of −3 is no number, and its derivative is"
    type_number(figure, "x1", "0")
    assert shown(figure) == pytest.approx(computed(0.0, 3.0), rel=1e-6, nan_ok=True)


def test_the_steps_say_the_new_numbers(figure: Locator) -> None:
    figure.get_by_role("slider", name="Step").fill("1")
    type_number(figure, "x1", "3.5")
    expect(figure.locator(".graph-now")).to_have_text("Forward: a = 10.5000, recorded as MulBackward0.")
    figure.get_by_role("slider", name="Step").fill("9")
    expect(figure.locator(".graph-now")).to_contain_text("At x2 they add up: (−2.3278) + 0.0470 = −2.2808.")
    figure.get_by_role("slider", name="Step").fill("7")
    expect(figure.locator(".g-card:has(.g-name:text-is('x2')) .g-got")).to_have_text("grad −2.3278")


def test_a_small_vector(opened: Callable[[str], Page]) -> None:
    figure = opened(VECTOR).locator(".graph-figure > div[id]").first
    type_number(figure, "point[1]", "5")
    expect(figure.locator(".graph-whose")).to_contain_text("loss = 26")
    expect(figure.locator(".g-numbers.g-under")).to_have_text("[1, 5]")


def test_on_a_phone(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, FIRST)
    figure = tab.locator(f"#{FIGURE}")
    field(figure, "x1").tap()
    figure.get_by_role("textbox", name="Value of x1").fill("3.5")
    figure.get_by_role("textbox", name="Value of x1").press("Enter")
    expect(figure.locator(".graph-whose")).to_contain_text(LIVE)
    assert not too_wide(tab)
