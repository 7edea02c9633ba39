"""A card lights the line that made it, a line the cards that it made, and play marks where it is."""

from __future__ import annotations

import pytest
from looking import LEAST_CONTRAST
from page_scripts import CONTRAST
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visiting import open_page

PAGE = "gallery/graphs/first_graph.html"
FIGURE = "graph-first-graph-1"  # right below the code

#: The lines of the first block of code behind which a band lies, by their text, from where the bands are.
LIT = """block => {
    const style = getComputedStyle(block), lines = block.textContent.trimEnd().split("\\n");
    const top = parseFloat(style.paddingTop), high = (block.clientHeight - 2 * top) / lines.length;
    if (style.backgroundImage === "none") return [];
    const places = style.backgroundPosition.split(", "), sizes = style.backgroundSize.split(", ");
    return lines.filter((line, at) => places.some((place, number) => {
        const from = parseFloat(place.split(" ")[1]), to = from + parseFloat(sizes[number].split(" ")[1]);
        const middle = top + (at + 0.5) * high;
        return from < middle && middle < to;
    }));
}"""


@pytest.fixture
def page_(fresh: BrowserContext, origin: str) -> Page:
    return open_page(fresh, origin, PAGE)


@pytest.fixture
def figure(page_: Page) -> Locator:
    return page_.locator(f"#{FIGURE}")


@pytest.fixture
def code(page_: Page) -> Locator:
    return page_.locator("#cell-1 pre")


def card(figure: Locator, name: str) -> Locator:
    return figure.locator(f".g-card:has(.g-name:text-is('{name}'))")


def names(cards: Locator) -> list[str]:
    return cards.locator(".g-name").all_text_contents()


@pytest.mark.parametrize("how", ["pointer", "focus"])
def test_a_card_lights_its_line(figure: Locator, code: Locator, how: str) -> None:
    assert code.evaluate(LIT) == []
    asked = card(figure, "y1")
    asked.hover() if how == "pointer" else asked.focus()
    expect(figure.locator(".graph-note")).to_be_visible()
    assert code.evaluate(LIT) == ["y1 = torch.log(a)"]
    figure.get_by_role("button", name="Play").hover() if how == "pointer" else asked.blur()
    assert code.evaluate(LIT) == []


def test_a_tap_on_a_card_lights_its_line(browser: Browser, origin: str) -> None:
    with browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800}) as phone:
        tab = open_page(phone, origin, PAGE)
        figure = tab.locator(f"#{FIGURE}")
        figure.scroll_into_view_if_needed()
        before = tab.evaluate("scrollY")
        card(figure, "a").tap()
        expect(figure.locator(".graph-note")).to_be_visible()
        assert tab.locator("#cell-1 pre").evaluate(LIT) == ["a = x1 * x2"]
        assert tab.evaluate("scrollY") == pytest.approx(before, abs=2), "nothing scrolls by itself"


def test_a_line_lights_its_cards_in_each_figure(page_: Page, figure: Locator, code: Locator) -> None:
    code.get_by_text("log").hover()
    for each in (figure, page_.locator("#graph-first-graph-2")):
        assert names(each.locator(".g-made")) == ["y1"]
    assert code.evaluate(LIT) == ["y1 = torch.log(a)"]
    expect(figure.locator(".graph-note")).to_be_hidden()
    code.get_by_text("import").hover()
    assert page_.locator(".g-made").count() == 0 and code.evaluate(LIT) == []


def test_play_marks_the_line_that_runs(figure: Locator, code: Locator) -> None:
    slider, marked = figure.get_by_role("slider"), []
    for step in range(8):
        slider.fill(str(step))
        marked.append([line.partition(" ")[0] for line in code.evaluate(LIT)])
    assert marked == [["x1", "x2"], ["a"], ["y1"], ["y2"], ["w"], ["w"], ["w"], ["y2"]]
    code.get_by_text("log").hover()
    assert code.evaluate(LIT) == ["y1 = torch.log(a)"]
    figure.get_by_role("button", name="Play").hover()
    assert code.evaluate(LIT) == ["y2 = torch.sin(x2)"], "what is played is marked again"
    slider.fill("12")
    assert code.evaluate(LIT) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_code_can_be_read_on_a_band(browser: Browser, origin: str, theme: str) -> None:
    """axe cannot tell what color lies behind a text if it is an image, which a band is."""
    with browser.new_context(color_scheme=theme) as window:
        code = open_page(window, origin, PAGE).locator("#cell-1 pre")
        pale = code.evaluate(
            f"(code, least) => {{{CONTRAST}"
            + """
                const probe = code.ownerDocument.body.appendChild(document.createElement("i"));
                probe.style.color = "var(--color-highlight-on-target)";
                const band = getComputedStyle(probe).color;
                // every class that the style of code knows, not only those of this page
                const classes = [..."bcgklmnopsvw"].flatMap(a => ["", ..."123abcdefhilmnoprstuvwxd"].map(b => a + b));
                return classes.flatMap(name => {
                    const token = code.appendChild(document.createElement("span"));
                    token.className = name;
                    const color = getComputedStyle(token).color, found = contrast(color, band);
                    token.remove();
                    return found < least ? [`${name}: ${color}, ${found.toFixed(2)}`] : [];
                });
            }""",
            LEAST_CONTRAST,
        )
        assert pale == []
