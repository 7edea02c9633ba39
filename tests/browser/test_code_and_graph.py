"""A card lights the line that made it, a line the cards that it made, and play marks where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from looking import LEAST_CONTRAST
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import FIRST, find_card, open_page

FIGURE = "graph-first-graph-1"  # right below the code


@pytest.fixture
def figure(tab: Page) -> Locator:
    return tab.locator(f"#{FIGURE}")


@pytest.fixture
def code(tab: Page) -> Locator:
    return tab.locator("#cell-1 pre")


def names(cards: Locator) -> list[str]:
    return cards.locator(".g-name").all_text_contents()


@pytest.mark.parametrize("how", ["pointer", "focus"])
def test_a_card_lights_its_line(figure: Locator, code: Locator, how: str) -> None:
    assert run_script(code, "listLitLines") == []
    asked = find_card(figure, "y1")
    asked.hover() if how == "pointer" else asked.focus()
    expect(figure.locator(".graph-note")).to_be_visible()
    assert run_script(code, "listLitLines") == ["y1 = torch.log(a)"]
    figure.get_by_role("button", name="Play").hover() if how == "pointer" else asked.blur()
    assert run_script(code, "listLitLines") == []


def test_a_line_lights_its_cards_in_each_figure(tab: Page, figure: Locator, code: Locator) -> None:
    code.get_by_text("log").hover()
    for each in (figure, tab.locator("#graph-first-graph-2")):
        assert names(each.locator(".g-made")) == ["y1"]
    assert run_script(code, "listLitLines") == ["y1 = torch.log(a)"]
    expect(figure.locator(".graph-note")).to_be_hidden()
    code.get_by_text("import").first.hover()
    assert tab.locator(".g-made").count() == 0 and run_script(code, "listLitLines") == []


def test_play_marks_the_line_that_runs(figure: Locator, code: Locator) -> None:
    slider, marked = figure.get_by_role("slider"), []
    for step in range(8):
        slider.fill(str(step))
        marked.append([line.partition(" ")[0] for line in run_script(code, "listLitLines")])
    assert marked == [["x1", "x2"], ["a"], ["y1"], ["y2"], ["w"], ["w"], ["w"], ["y2"]]
    code.get_by_text("log").hover()
    assert run_script(code, "listLitLines") == ["y1 = torch.log(a)"]
    figure.get_by_role("button", name="Play").hover()
    assert run_script(code, "listLitLines") == ["y2 = torch.sin(x2)"], "what is played is marked again"
    slider.fill("12")
    assert run_script(code, "listLitLines") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_code_can_be_read_on_a_band(window: Callable[[str], BrowserContext], origin: str, theme: str) -> None:
    code = open_page(window(theme), origin, FIRST).locator("#cell-1 pre")
    assert run_script(code, "listPaleTokens", LEAST_CONTRAST) == []
