"""The page on which a reader types an expression: drawn with PyTorch's numbers, shared, and asked as an exercise."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import axe
import pytest
import torch
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import FIRST, Visit, open_page, too_wide

PAGE, FILES = "guide/type-an-expression.html", ("dagre.min.js", "language.js", "page.js", "page.css")
LINE = "x1 = 2\nx2 = 3\nw = log(x1 * x2) * sin(x2)"
PASTED = """import torch

x = torch.tensor(2.0, requires_grad=True)
lr = 0.5
y = lr * x**2
y.backward()
print(x.grad)
"""


@pytest.fixture
def tab(opened: Callable[[str], Page]) -> Page:
    return opened(PAGE)


@pytest.fixture
def lines(tab: Page) -> Locator:
    return tab.get_by_label("Your lines")


def figure(tab: Page) -> Locator:
    return tab.locator("#typed")


def agrees_with_pytorch(tab: Page) -> bool:
    """Whether the figure has the values and gradients of the program beside it, which is run."""
    names = {}
    exec(tab.locator(".typed-program pre").inner_text().replace("print(", "str("), names)
    shown, same = run_script(figure(tab), "listNumbers"), []
    for name, tensor in names.items():
        if isinstance(tensor, torch.Tensor) and name in shown:
            wanted = [tensor.item(), *([tensor.grad.item()] if tensor.is_leaf else [])]
            same.append(shown[name][: len(wanted)] == pytest.approx(wanted, rel=1e-5, nan_ok=True))
    return len(same) > 1 and all(same)


def test_what_is_typed_is_drawn(tab: Page, lines: Locator, visit: Visit) -> None:
    before = tab.locator(".typed-program pre").inner_text().strip()
    assert tab.evaluate("text => expressions.build(text).program", lines.input_value()).strip() == before
    lines.fill(LINE)
    expect(figure(tab).locator("svg.graph")).to_contain_text("grad −1.7268")
    expect(tab.get_by_role("status").first).to_have_text("w = 0.2529")
    assert agrees_with_pytorch(tab)
    assert not visit.errors


def test_each_example(tab: Page, visit: Visit) -> None:
    buttons = tab.get_by_role("group", name="Examples").get_by_role("button")
    for number in range(buttons.count()):
        buttons.nth(number).click()
        assert agrees_with_pytorch(tab), buttons.nth(number).inner_text()
    assert buttons.count() >= 5 and not visit.errors


def test_an_error_is_said_and_marked(tab: Page, lines: Locator, looks: axe.Looks) -> None:
    lines.fill(LINE.replace("x1 *", "x3 *"))
    expect(tab.get_by_role("status").first).to_contain_text(re.compile("^Line 3: .*x3"))
    expect(tab.locator(".typed-marks u")).to_have_text("x3")
    assert tab.locator("figure.graph-figure").first.evaluate("figure => figure.inert && figure.checkVisibility()")
    axe.inject(tab)
    assert not axe.color_faults(tab, looks) + axe.faults(tab)
    lines.fill(f"{LINE}\n{'1 + ' * 60}q")
    lines.press("Control+End")
    expect(tab.locator(".typed-marks u")).to_have_text("q")
    scrolled = "[...document.querySelectorAll('.typed-lines > *')].map(box => box.scrollLeft)"
    assert len({round(left / 2) for left in tab.evaluate(scrolled)}) == 1 and all(tab.evaluate(scrolled))
    lines.fill(LINE)
    expect(tab.locator(".typed-marks u")).to_have_count(0)


def test_shared_by_its_address(tab: Page, lines: Locator, origin: str, visit: Visit) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lines.fill(f"{LINE}  # 100 % & more")
    tab.get_by_role("button", name="Copy link").click()
    expect(tab.get_by_role("button", name="Copied")).to_be_visible()
    address = tab.evaluate("navigator.clipboard.readText()").removeprefix(f"{origin}/")
    other = open_page(tab.context, origin, f"{address}#typed.2", visit)
    assert other.get_by_label("Your lines").input_value() == lines.input_value() and agrees_with_pytorch(other)
    expect(figure(other).locator(".graph-now")).to_contain_text("LogBackward0")
    bad = open_page(tab.context, origin, f"{PAGE}?expression=%E0%A4%A&expression=<b>", visit)
    expect(bad.get_by_role("status").first).to_contain_text("Line 1: ")
    assert not visit.errors


def test_a_dragged_number_is_written_back(tab: Page, lines: Locator) -> None:
    lines.fill(LINE)
    box = figure(tab).get_by_role("spinbutton", name="Value of x1").bounding_box()
    tab.mouse.move(box["x"] + 20, box["y"] + 9)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 80, box["y"] + 9, steps=4)  # 4 px are a step of 0.1
    tab.mouse.up()
    expect(lines).to_have_value(LINE.replace("x1 = 2", "x1 = 3.5"))
    tab.wait_for_url("**x1+%3D+3.5*")
    assert agrees_with_pytorch(tab)
    figure(tab).get_by_role("button", name="Back to").click()
    expect(lines).to_have_value(LINE)


def test_a_pasted_program(tab: Page, lines: Locator) -> None:
    lines.fill(PASTED)
    expect(figure(tab).locator("svg.graph .g-leaf")).to_have_count(1)
    expect(figure(tab).locator("svg.graph")).to_contain_text("grad 2")
    assert agrees_with_pytorch(tab)
    field = figure(tab).get_by_role("spinbutton", name="Value of x")
    field.press("Shift+ArrowUp")
    expect(lines).to_have_value(PASTED.replace("2.0", "3.0"))
    for typed, written in (("-1.25", "-1.25"), ("inf", "torch.inf")):
        field.press("Enter")
        tab.keyboard.type(typed)
        tab.keyboard.press("Enter")
        expect(lines).to_have_value(PASTED.replace("2.0", written))
        assert agrees_with_pytorch(tab)


def test_the_steps_say_where_nan_comes_from(tab: Page, lines: Locator) -> None:
    tab.get_by_role("button", name="where and NaN").click()
    expect(figure(tab).locator("svg.graph")).to_contain_text("= 1 + (nan)")
    back = figure(tab).get_by_role("button", name="One step back")
    for _ in range(2):
        back.click()
    now = "Backward: SqrtBackward0 (root) sends nan to x. At x they add up: 1 + (nan) = nan."
    expect(figure(tab).locator(".graph-now")).to_have_text(now)
    lines.fill("x = 100\nlog(exp(x))")  # float32 ends before exp(100)
    expect(tab.get_by_role("status").first).to_have_text("result = inf")
    assert agrees_with_pytorch(tab)


def test_by_keyboard(tab: Page, lines: Locator) -> None:
    lines.press("Control+A")
    tab.keyboard.type("x = 1\nx * x")
    expect(figure(tab).locator("svg.graph")).to_contain_text("= 1 + 1")
    field = figure(tab).get_by_role("spinbutton", name="Value of x")
    for _ in range(8):
        if not field.evaluate("field => field === document.activeElement"):
            tab.keyboard.press("Tab")
    tab.keyboard.press("Shift+ArrowUp")
    expect(lines).to_have_value("x = 2\nx * x")
    lines.fill("x = 1\nalso = x\nw = also * 2")
    figure(tab).get_by_role("spinbutton", name="Value of x, also").press("ArrowUp")
    expect(lines).to_have_value("x = 1.1\nalso = x\nw = also * 2")


def test_the_exercise_says_which_edge_went_wrong(tab: Page, looks: axe.Looks) -> None:
    tab.get_by_role("button", name="Give me one").press("Enter")
    text = tab.locator(".exercise-text").inner_text()
    program, names = tab.evaluate("text => expressions.build(text).program", text), {}
    exec(program.rpartition("\n\n")[0], names)
    asked, fields = tab.locator(".exercise-fields"), tab.locator(".exercise-fields input").all()
    questions = re.findall(r"(\w+)\.grad", asked.inner_text())
    for field in fields:
        field.fill("1234")
    field.press("Enter")
    result, all_ = tab.locator(".exercise-result"), len(fields)
    expect(result).to_contain_text(re.compile(rf"^0 of {all_} right\. {questions[0]}\.grad: .*\b1 arrives at w"))
    assert tab.locator("#asked .g-edge.g-active").count()
    tab.evaluate("scrollTo(0, 0)")
    axe.inject(tab)
    assert not axe.color_faults(tab, looks) + axe.faults(tab)
    wanted = torch.autograd.grad(names["w"], [names[name] for name in questions])
    for field, gradient in zip(fields, wanted, strict=True):
        field.fill(f"{gradient.item():g}".replace("-", "−"))
    field.press("Enter")
    expect(result).to_have_text(f"All {all_} right.")
    tab.get_by_role("button", name="Show").press("Enter")
    expect(tab.locator("#asked .graph-play")).to_be_visible()
    expect(tab.locator("#asked .graph-link")).to_be_hidden()
    padding = (
        "id => getComputedStyle(document.querySelector(`#${id} .graph-play`)).padding"  # it looks as in all figures
    )
    assert tab.evaluate(padding, "asked") == tab.evaluate(
        padding, tab.locator("figure.graph-figure > div").first.get_attribute("id")
    )
    assert (
        tab.evaluate("new Set([...document.querySelectorAll('[id]')].map(box => box.id)).size")
        == tab.locator("[id]").count()
    )


def test_on_a_phone(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, PAGE)
    tab.get_by_role("button", name="A neuron").tap()
    tab.get_by_role("button", name="Give me one").tap()
    tab.get_by_role("button", name="Show").tap()
    tab.get_by_label("Your lines").fill(f"x = 2\n{'long' * 40} = x * x")
    expect(tab.get_by_role("status").first).to_contain_text("long = 4")
    expect(tab.locator("#typed svg.graph-upright, #asked svg.graph-upright")).to_have_count(2)
    assert not too_wide(tab)
    assert tab.get_by_role("status").first.bounding_box()["width"] < 390


def test_without_scripts(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, PAGE)
    expect(tab.locator(".graph-figure svg.graph").first).to_contain_text("grad −1.7268")
    expect(tab.get_by_text("Typing needs JavaScript.")).to_be_visible()


def test_what_the_page_says_of_itself(tab: Page, site: Path, visit: Visit, origin: str) -> None:
    sizes = [len(gzip.compress((site / "_static" / name).read_bytes())) for name in FILES]
    said = re.search(r"weigh (\d+) KiB", tab.locator("article").inner_text())
    assert said and abs(int(said[1]) - sum(sizes) / 1024) <= 1, sum(sizes) / 1024
    typed = set(re.findall(r"\b([a-z]+)\(", tab.locator("#what-you-can-type ul").inner_text()))
    assert typed == {*tab.evaluate("expressions.FUNCTIONS.map(({ name }) => name)")}
    own, other = {f"_static/{name}" for name in FILES}, Visit()
    open_page(tab.context, origin, FIRST, other)
    assert own <= visit.files and not own & other.files
