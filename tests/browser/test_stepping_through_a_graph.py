"""A graph plays forward and backward, by mouse and by keyboard, and a card that is pointed at tells what is known of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visiting import new_tab, open_page, too_wide

PAGE = "gallery/graphs/first_graph.html"
FIGURE = "graph-first-graph-2"  # after backward
GRADIENT = "Backward: AccumulateGrad adds what has arrived to x2.grad: −1.7267885."
SUM = "At x2 they add up: (−1.7738) + 0.0470 = −1.7268."


@pytest.fixture
def page_(fresh: BrowserContext, origin: str) -> Page:
    return open_page(fresh, origin, PAGE)


@pytest.fixture
def figure(page_: Page) -> Locator:
    return page_.locator(f"#{FIGURE}")


def card(figure: Locator, name: str) -> Locator:
    return figure.locator(f".g-card:has(.g-name:text-is('{name}'))")


def test_by_mouse(figure: Locator) -> None:
    said = figure.locator(".graph-now")
    for words in ("Before the first operation: x1 = 2, x2 = 3.", "Forward: a = 6, recorded as MulBackward0."):
        figure.get_by_role("button", name="One step on").click()
        expect(said).to_have_text(words)
    told = []
    while GRADIENT not in told:
        figure.get_by_role("button", name="One step on").click()
        told.append(said.inner_text())
        assert len(told) < 20, told
    assert any(SUM in words for words in told)
    figure.get_by_role("button", name="One step back").click()
    expect(said).to_contain_text("x1.grad")


def test_by_keyboard(page_: Page, figure: Locator) -> None:
    slider = figure.get_by_role("slider", name="Step")
    slider.focus()
    page_.keyboard.press("Home")
    expect(figure.locator(".graph-now")).to_contain_text("Before the first operation")
    for _ in range(20):
        page_.keyboard.press("ArrowRight")
        if figure.locator(".graph-now").inner_text() == GRADIENT:
            break
    else:
        pytest.fail("the last gradient never came")
    assert slider.get_attribute("aria-valuetext") == "12 / 13"


def test_what_is_not_there_yet_is_not_shown(figure: Locator) -> None:
    slider = figure.get_by_role("slider")
    slider.fill("1")  # a has just been computed
    later = figure.locator(".g-card.g-later .g-name").all_text_contents()
    assert sorted(later) == ["w", "y1", "y2"]
    expect(card(figure, "y1").locator(".g-value")).not_to_be_visible()
    expect(card(figure, "x2").locator(".g-gradient").first).not_to_be_visible()


def test_gradients_arrive_one_by_one(figure: Locator) -> None:
    slider = figure.get_by_role("slider")
    slider.fill("7")  # sin has sent, the product has not
    expect(card(figure, "x2").locator(".g-got")).to_have_text("grad −1.7738")
    slider.fill("11")
    expect(card(figure, "x2").locator(".g-got")).to_have_count(0)
    expect(card(figure, "x2").locator(".g-gradient").first).to_have_text("grad −1.7268")


def test_the_last_step_is_the_figure_as_it_was(figure: Locator) -> None:
    before = figure.locator(".graph-scroll").inner_html()
    figure.get_by_role("slider").fill("3")
    assert figure.locator(".graph-scroll").inner_html() != before
    figure.get_by_role("slider").fill("12")
    assert figure.locator(".g-later, .g-ungiven, .g-active, .g-got").count() == 0


def test_it_plays_to_the_end(fresh: BrowserContext, origin: str) -> None:
    tab = new_tab(fresh)
    tab.clock.install()
    tab.goto(f"{origin}/{PAGE}")
    figure = tab.locator(f"#{FIGURE}")
    figure.get_by_role("button", name="Play").click()
    expect(figure.get_by_role("button", name="Pause")).to_be_visible()
    expect(figure.locator(".graph-now")).to_contain_text("Before the first operation")
    tab.clock.run_for(60_000)
    expect(figure.get_by_role("button", name="Play")).to_be_visible()
    expect(figure.get_by_role("slider")).to_have_value("12")


@pytest.mark.parametrize("how", ["pointer", "focus"])
def test_a_card_tells(figure: Locator, how: str) -> None:
    w = card(figure, "y1")
    w.hover() if how == "pointer" else w.focus()
    note = figure.locator(".graph-note")
    for fact in ("LogBackward0", "y1 = torch.log(a)", "1.7917595", "grad / a"):
        expect(note).to_contain_text(fact)
        assert fact in w.get_attribute("aria-label")
    lit = figure.locator(".g-card.g-lit .g-name").all_text_contents()
    assert sorted(lit) == ["a", "x1", "x2", "y1"], "its inputs, down to the leaves"
    assert figure.locator(".g-edge.g-lit").count() == 3


def test_the_arrow_keys_go_from_card_to_card(page_: Page, figure: Locator) -> None:
    figure.locator(".g-card[tabindex='0']").focus()
    names = []
    for _ in range(6):
        names.append(page_.evaluate("document.activeElement.querySelector('.g-name').textContent"))
        page_.keyboard.press("ArrowRight")
    assert names == ["x1", "x2", "a", "y1", "y2", "w"]
    page_.keyboard.press("Escape")
    expect(figure.locator(".graph-note")).to_be_hidden()


def test_a_link_opens_the_figure_in_its_step(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, f"{PAGE}#{FIGURE}.11")
    figure = tab.locator(f"#{FIGURE}")
    expect(figure.locator(".graph-now")).to_have_text(GRADIENT)
    expect(figure.locator("svg.graph")).to_be_in_viewport()
    figure.get_by_role("button", name="One step back").click()
    assert figure.locator(".graph-link").get_attribute("href").endswith(f"#{FIGURE}.10")


@pytest.mark.parametrize("fragment", ["%", FIGURE, f"{FIGURE}.", f"{FIGURE}.x", f"{FIGURE}.-1"])
def test_a_link_to_no_step_leaves_the_figure_whole(fresh: BrowserContext, origin: str, fragment: str) -> None:
    tab, errors = new_tab(fresh), []
    tab.on("pageerror", lambda error: errors.append(error))
    tab.goto(f"{origin}/{PAGE}#{fragment}")
    expect(tab.locator(f"#{FIGURE}").get_by_role("slider")).to_have_value("12")
    assert not errors


def test_it_can_be_made_larger(page_: Page, figure: Locator) -> None:
    box = figure.locator(".graph-scroll")
    width = figure.locator("svg.graph").bounding_box()["width"]
    for _ in range(5):
        figure.get_by_role("button", name="Larger").click()
    assert figure.locator("svg.graph").bounding_box()["width"] > 2 * width
    assert not too_wide(page_)
    expect(box).to_have_attribute("tabindex", "0")


@pytest.fixture
def still(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(reduced_motion="reduce") as context:
        yield context


def test_nothing_moves_for_who_asked_for_that(still: BrowserContext, origin: str) -> None:
    tab = open_page(still, origin, f"{PAGE}#{FIGURE}.7")
    assert tab.locator(f"#{FIGURE} .g-edge.g-active").count() == 1
    assert tab.evaluate("document.getAnimations().length") == 0


def test_without_javascript_the_figure_is_whole(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/{PAGE}#{FIGURE}.3")
        figure = tab.locator(f"#{FIGURE}")
        expect(figure.locator("svg.graph")).to_be_visible()
        expect(figure.get_by_text("grad −1.7268")).to_be_visible()
        expect(figure.locator(".graph-bar")).to_be_hidden()
        expect(figure.locator(".graph-now")).to_be_hidden()
