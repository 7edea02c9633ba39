"""A graph plays forward and backward, by mouse and by keyboard, and a card that is pointed at tells what is known of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from looking import LEAST_CONTRAST
from page_scripts import run_script
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visiting import FIGURE, FIRST, Visit, find_card, new_tab, open_page

GRADIENT = "Backward: AccumulateGrad adds what has arrived to x2.grad: −1.7268."
TRAVEL = 1500  # milliseconds from the moment at which tokens leave until the cards have what they bring


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_icon_is_seen_under_the_pointer(window: Callable[[str], BrowserContext], origin: str, theme: str) -> None:
    play = open_page(window(theme), origin, FIRST).locator(f"#{FIGURE}").get_by_role("button", name="Play")
    play.hover()
    assert run_script(play, "findIconContrast") > LEAST_CONTRAST


def test_by_keyboard_from_the_slider_the_drawing_and_a_button(tab: Page, figure: Locator) -> None:
    slider = figure.get_by_role("slider", name="Step")
    slider.focus()
    tab.keyboard.press("Home")
    expect(figure.locator(".graph-now")).to_contain_text("Before the first operation")
    for _ in range(11):
        tab.keyboard.press("ArrowRight")
    expect(figure.locator(".graph-now")).to_have_text(GRADIENT)
    assert slider.get_attribute("aria-valuetext") == "12 / 13"
    for start in ("the drawing", "a button"):
        slider.fill("12")
        if start == "the drawing":  # beside the cards: they have arrow keys of their own
            figure.locator("svg.graph").click(position={"x": 180, "y": 8})
        else:
            figure.get_by_role("button", name="Play").focus()
        steps = []
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft"):
            tab.keyboard.press(key)
            steps.append(slider.input_value())
        assert steps == ["0", "1", "0", "0"], start
    tab.keyboard.press("Space")
    expect(figure.get_by_role("button", name="Pause")).to_be_visible()


def test_a_step_shows_what_is_there_and_what_has_arrived(figure: Locator) -> None:
    """A number is written in one way; a sum has its terms as they arrive."""
    slider, said, x2 = figure.get_by_role("slider"), figure.locator(".graph-now"), find_card(figure, "x2")
    before = figure.locator(".graph-scroll").inner_html()
    slider.fill("1")  # a has just been computed
    assert figure.locator(".graph-scroll").inner_html() != before
    assert sorted(figure.locator(".g-card.g-later .g-name").all_text_contents()) == ["w", "y1", "y2"]
    expect(find_card(figure, "y1").locator(".g-value")).not_to_be_visible()
    expect(x2.locator(".g-gradient").first).not_to_be_visible()
    assert "value" not in find_card(figure, "w").get_attribute("aria-label")
    slider.fill("7")  # sin has sent, the product has not
    expect(x2.locator(".g-got")).to_have_text("grad −1.7738")
    slider.fill("9")
    expect(said).to_contain_text("(−1.7738) + 0.0470 = −1.7268.")
    slider.fill("11")
    expect(x2.locator(".g-got")).to_have_count(0)
    expect(x2.locator(".g-gradient").first).to_have_text("grad −1.7268")
    slider.fill("12")
    assert x2.locator(".g-gradient").all_text_contents() == ["grad −1.7268", "= (−1.7738) + 0.0470"]
    assert "gradient (−1.7738) + 0.0470 = −1.7268" in x2.get_attribute("aria-label")
    assert figure.locator(".g-later, .g-ungiven, .g-active, .g-back, .g-got, .g-token").count() == 0
    for step, gradient in {"4": None, "7": "−1.7738", "9": "−1.7268", "11": "(−1.7738) + 0.0470 = −1.7268"}.items():
        slider.fill(step)
        facts = [fact for fact in x2.get_attribute("aria-label").split("; ") if fact.startswith("gradient")]
        assert facts == ([f"gradient {gradient}"] if gradient else [])


@pytest.fixture
def timed(fresh: BrowserContext, origin: str) -> Page:
    """The page, in a tab whose time stands still until a test lets it pass."""
    tab = new_tab(fresh)
    tab.clock.install(time=0)
    tab.goto(f"{origin}/{FIRST}")
    tab.clock.pause_at(60_000)
    return tab


def test_a_token_is_multiplied_on_its_way_and_those_that_meet_are_added(timed: Page) -> None:
    figure = timed.locator(f"#{FIGURE}")
    figure.get_by_role("slider").fill("6")
    figure.get_by_role("button", name="One step on").click()
    token, seen, places = figure.locator(".g-token"), [], []
    for _ in range(12):
        seen.append(token.text_content())
        places.append(token.bounding_box()["x"])
        timed.clock.run_for(100)
    assert list(dict.fromkeys(seen)) == ["1.7918", "1.7918 × −0.9900", "−1.7738"]
    assert places[0] > places[3] > places[-1], "from right to left"
    expect(find_card(figure, "x2").locator(".g-got")).to_have_count(0)
    timed.clock.run_for(TRAVEL)
    expect(find_card(figure, "x2").locator(".g-got")).to_have_text("grad −1.7738")
    for _ in range(2):
        figure.get_by_role("button", name="One step on").click()
    assert figure.locator(".g-token").count() == 2, "those of this step alone, for who is in a hurry"
    timed.clock.run_for(1200)
    assert figure.locator(".g-token").all_text_contents() == ["0.0706", "+ 0.0470"]
    expect(find_card(figure, "x2").locator(".g-got")).to_have_text("grad −1.7738")
    timed.clock.run_for(TRAVEL)
    expect(find_card(figure, "x2").locator(".g-got")).to_have_text("grad −1.7268")


def test_arrowheads_turn_where_a_gradient_has_gone(figure: Locator) -> None:
    edges = figure.locator(".g-edge")
    drawn = edges.evaluate_all("edges => edges.map(edge => edge.innerHTML)")
    for step, turned in {"4": 0, "6": 2, "7": 3, "9": 6, "12": 0}.items():
        figure.get_by_role("slider").fill(step)
        at_tail = [run_script(edge, "isTurned") for edge in edges.all()]
        assert sum(at_tail) == turned, f"step {step}"
        assert edges.evaluate_all("edges => edges.map(edge => edge.matches('.g-back'))") == at_tail
    assert edges.evaluate_all("edges => edges.map(edge => edge.innerHTML)") == drawn


def test_it_plays_to_the_end(timed: Page) -> None:
    figure = timed.locator(f"#{FIGURE}")
    slider = figure.get_by_role("slider")
    slider.fill("0")
    figure.get_by_role("button", name="Play").click()
    timed.clock.run_for(7000)
    expect(slider).to_have_value("5")
    timed.clock.run_for(60_000)
    expect(figure.get_by_role("button", name="Play")).to_be_visible()
    expect(slider).to_have_value("12")


@pytest.mark.parametrize("how", ["pointer", "focus"])
def test_a_card_tells(figure: Locator, how: str) -> None:
    w = find_card(figure, "y1")
    w.hover() if how == "pointer" else w.focus()
    note = figure.locator(".graph-note")
    expect(note).to_be_visible()
    for fact in ("LogBackward0", "y1 = torch.log(a)", "1.7918", "grad / a"):
        expect(note).to_contain_text(fact)
        assert fact in w.get_attribute("aria-label")
    lit = figure.locator(".g-card.g-lit .g-name").all_text_contents()
    assert sorted(lit) == ["a", "x1", "x2", "y1"], "its inputs, down to the leaves"
    assert figure.locator(".g-edge.g-lit").count() == 3
    find_card(figure, "x1").focus()
    assert sorted(figure.locator(".g-card.g-lit .g-name").all_text_contents()) == ["a", "w", "x1", "y1"], "of a leaf"


def test_a_pointer_on_its_way_to_elsewhere_asks_nothing(timed: Page) -> None:
    figure = timed.locator(f"#{FIGURE}")
    note = figure.locator(".graph-note")
    find_card(figure, "a").hover()
    timed.clock.run_for(100)
    assert not note.is_visible()
    figure.get_by_role("button", name="Play").hover()
    timed.clock.run_for(1000)
    assert not note.is_visible()
    find_card(figure, "a").hover()
    timed.clock.run_for(200)
    expect(note).to_be_visible()


def test_a_note_leaves_the_other_cards_and_the_controls_free(figure: Locator) -> None:
    names = ("x1", "x2", "a", "y1", "y2", "w")
    figure.evaluate("figure => figure.scrollIntoView({ block: 'center', behavior: 'instant' })")
    for name in names:
        find_card(figure, name).focus()
        note, bar = (figure.locator(part).bounding_box() for part in (".graph-note", ".graph-bar"))
        for other in [
            bar,
            *(find_card(figure, key).locator("> rect").bounding_box() for key in names if key != name),
        ]:
            across = note["x"] < other["x"] + other["width"] and note["x"] + note["width"] > other["x"]
            down = note["y"] < other["y"] + other["height"] and note["y"] + note["height"] > other["y"]
            assert not (across and down), name


def test_the_arrow_keys_go_from_card_to_card(tab: Page, figure: Locator) -> None:
    figure.locator(".g-card[tabindex='0']").focus()
    names = []
    for _ in range(6):
        names.append(tab.evaluate("document.activeElement.querySelector('.g-name').textContent"))
        tab.keyboard.press("ArrowRight")
    assert names == ["x1", "x2", "a", "y1", "y2", "w"]
    tab.keyboard.press("Escape")
    expect(figure.locator(".graph-note")).to_be_hidden()


def test_a_link_opens_the_figure_in_its_step(opened: Callable[[str], Page]) -> None:
    figure = opened(f"{FIRST}#{FIGURE}.11").locator(f"#{FIGURE}")
    expect(figure.locator(".graph-now")).to_have_text(GRADIENT)
    expect(figure.locator("svg.graph")).to_be_in_viewport()
    figure.get_by_role("button", name="One step back").click()
    assert figure.locator(".graph-link").get_attribute("href").endswith(f"#{FIGURE}.10")


@pytest.mark.parametrize("fragment", ["%", f"{FIGURE}.x", f"{FIGURE}.-1"])
def test_a_link_to_no_step_leaves_the_figure_whole(
    opened: Callable[[str], Page], visit: Visit, fragment: str
) -> None:
    tab = opened(f"{FIRST}#{fragment}")
    expect(tab.locator(f"#{FIGURE}").get_by_role("slider")).to_have_value("12")
    assert not visit.errors


def test_nothing_moves_for_who_asked_for_that(browser: Browser, origin: str) -> None:
    with browser.new_context(reduced_motion="reduce") as still:
        tab = open_page(still, origin, f"{FIRST}#{FIGURE}.7")
        assert tab.locator(f"#{FIGURE} .g-edge.g-active").count() == 1
        tab.get_by_role("button", name="One step on").nth(1).click()
        token = tab.locator(f"#{FIGURE} .g-token")
        assert token.all_text_contents() == ["0.0235"], "the number that came along stands at the edge"
        place = token.bounding_box()
        tab.wait_for_timeout(300)
        assert token.bounding_box() == place
        assert tab.evaluate("document.getAnimations().length") == 0


def test_without_javascript_the_figure_is_whole(scriptless: BrowserContext, origin: str) -> None:
    figure = open_page(scriptless, origin, f"{FIRST}#{FIGURE}.3").locator(f"#{FIGURE}")
    expect(figure.locator("svg.graph")).to_be_visible()
    expect(figure.get_by_text("grad −1.7268")).to_be_visible()
    expect(figure.locator(".graph-bar")).to_be_hidden()
    expect(figure.locator(".graph-now")).to_be_hidden()
