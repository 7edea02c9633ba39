"""A reader answers an exercise before its solution is opened, and is told whether the answer is what PyTorch computed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, expect
from visiting import FIRST, open_page

TRY_AGAIN = "Not this. Try again, or open the solution."


def find_question(opened: Callable[[str], Page], page: str) -> Locator:
    form = opened(f"gallery/{page}.html").locator("form.predict").first
    expect(form).to_be_visible()
    return form


def told(form: Locator, answer: str) -> str:
    form.get_by_role("textbox").fill(answer)
    form.get_by_role("textbox").press("Enter")
    return form.locator("output").inner_text()


def test_a_number(opened: Callable[[str], Page]) -> None:
    x1, x2 = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True)
    (torch.log(x1 * x2) + torch.sin(x2)).backward()
    form, right = find_question(opened, "graphs/first_graph"), f"{x2.grad.item():.3f}"
    assert told(form, right) == "Right."
    expect(form).to_have_attribute("data-told", "right")
    assert told(form, right.replace("-", "\N{MINUS SIGN}")) == "Right."
    assert told(form, f"{1.02 * x2.grad.item():.4f}") == TRY_AGAIN
    expect(form).to_have_attribute("data-told", "wrong")
    form.get_by_role("textbox").press_sequentially("1")
    expect(form.locator("output")).to_be_empty()
    for unread in ("", "x", "1, 2", "1/2/3", "--1", "1e", "1,"):
        assert told(form, unread).startswith("Type a number"), unread


def test_several_numbers(opened: Callable[[str], Page]) -> None:
    strides = torch.zeros(2, 3, 4, 5).permute(2, 3, 0, 1).stride()
    form = find_question(opened, "tensors/strides")
    assert told(form, str(strides)) == "Right."
    assert told(form, ", ".join(map(str, reversed(strides)))) == TRY_AGAIN
    assert told(form, ", ".join(map(str, (*strides[:3], 0)))) == "3 of 4 are right."
    assert told(form, "5, 1") == "Type 4 numbers, separated by commas."


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ("0.333333", "1/3 .33", "0.3"),
        ("-0.001", "-1e-3", "0.001"),
        ("5120000", "5120000", "5_120_000"),
        ("0", "0 -0", "0.01"),
        ("nan", "NaN", "0"),
        ("inf", "inf 1/0", "-inf 107"),
    ],
)
def test_how_numbers_are_read(tab: Page, answer: str, right: str, wrong: str) -> None:
    script = tab.locator("script[src*='predict.js']").get_attribute("src")
    run_script(tab, "askAnother", [answer, script])
    form = tab.locator("form.predict").first
    assert {told(form, typed) for typed in right.split()} == {"Right."}
    assert "Right." not in {told(form, typed) for typed in wrong.split()}


def test_words_to_choose_from(opened: Callable[[str], Page]) -> None:
    form = find_question(opened, "graphs/why_is_grad_none")
    said = json.loads(form.locator("script").inner_text())
    check = form.get_by_role("button", name="Check")
    check.click()
    expect(form.locator("output")).to_have_text("Choose one.")
    for word in ("None", "zero", "a number"):
        form.get_by_role("combobox").select_option(word)
        check.click()
        expect(form.locator("output")).to_have_text("Right." if word == "zero" else TRY_AGAIN)
    assert said["answer"] == ["zero"]


def test_without_scripts_there_is_no_field(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, FIRST)
    expect(tab.locator("form.predict")).to_be_hidden()
    expect(tab.locator("details.solution")).to_be_visible()
