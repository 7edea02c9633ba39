"""A reader answers an exercise before its solution is opened, and is told whether the answer is what PyTorch computed."""

from __future__ import annotations

import json

import pytest
import torch
from playwright.sync_api import Browser, BrowserContext, Locator, expect
from visiting import open_page

TRY_AGAIN = "Not this. Try again, or open the solution."


def question(fresh: BrowserContext, origin: str, page: str) -> Locator:
    form = open_page(fresh, origin, f"gallery/{page}.html").locator("form.predict").first
    expect(form).to_be_visible()
    return form


def told(form: Locator, answer: str) -> str:
    form.get_by_role("textbox").fill(answer)
    form.get_by_role("textbox").press("Enter")
    return form.locator("output").inner_text()


def test_a_number(fresh: BrowserContext, origin: str) -> None:
    x1, x2 = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True)
    (torch.log(x1 * x2) + torch.sin(x2)).backward()
    form, right = question(fresh, origin, "graphs/first_graph"), f"{x2.grad.item():.3f}"
    assert told(form, right) == "Right."
    expect(form).to_have_attribute("data-told", "right")
    assert told(form, right.replace("-", "\N{MINUS SIGN}")) == "Right."
    assert told(form, f"{1.02 * x2.grad.item():.4f}") == TRY_AGAIN
    expect(form).to_have_attribute("data-told", "wrong")
    form.get_by_role("textbox").press_sequentially("1")
    expect(form.locator("output")).to_be_empty()
    for unread in ("", "x", "1, 2", "1/2/3", "--1", "1e", "1,"):
        assert told(form, unread).startswith("Type a number"), unread


def test_several_numbers(fresh: BrowserContext, origin: str) -> None:
    strides = torch.zeros(2, 3, 4, 5).permute(2, 3, 0, 1).stride()
    form = question(fresh, origin, "tensors/strides")
    assert told(form, str(strides)) == "Right."
    assert told(form, ", ".join(map(str, reversed(strides)))) == TRY_AGAIN
    assert told(form, ", ".join(map(str, (*strides[:3], 0)))) == "3 of 4 are right."
    assert told(form, "5, 1") == "Type 4 numbers, with commas."


@pytest.mark.parametrize(
    ("answer", "typed", "right"),
    [
        ("0.333333", "1/3", True),
        ("0.333333", ".33", True),
        ("0.333333", "0.3", False),
        ("-0.001", "-1e-3", True),
        ("106", "107", False),
        ("5120000", "5_120_000", False),
        ("0", "0", True),
        ("0", "0.01", False),
        ("0", "-0", True),
        ("nan", "NaN", True),
        ("nan", "0", False),
        ("inf", "inf", True),
        ("-inf", "inf", False),
        ("inf", "1/0", True),
    ],
)
def test_how_numbers_are_read(fresh: BrowserContext, origin: str, answer: str, typed: str, right: bool) -> None:
    tab = open_page(fresh, origin, "gallery/graphs/first_graph.html")
    script = tab.locator("script[src*='predict.js']").get_attribute("src")
    tab.evaluate(
        """([answer, script]) => new Promise(done => {
          const form = document.querySelector("form.predict"), fresh = form.cloneNode(true);
          const said = JSON.parse(fresh.querySelector("script").textContent);
          fresh.querySelector("script").textContent = JSON.stringify({...said, answer: [answer]});
          form.replaceWith(fresh);
          document.head.append(Object.assign(document.createElement("script"), {src: script, onload: done}));
        })""",
        [answer, script],
    )
    assert (told(tab.locator("form.predict").first, typed) == "Right.") is right


def test_words_to_choose_from(fresh: BrowserContext, origin: str) -> None:
    form = question(fresh, origin, "graphs/why_is_grad_none")
    said = json.loads(form.locator("script").inner_text())
    check = form.get_by_role("button", name="Check")
    check.click()
    expect(form.locator("output")).to_have_text("Choose one.")
    for word in ("None", "zero", "a number"):
        form.get_by_role("combobox").select_option(word)
        check.click()
        expect(form.locator("output")).to_have_text("Right." if word == "zero" else TRY_AGAIN)
    assert said["answer"] == ["zero"]


def test_without_scripts_there_is_no_field(browser: Browser, origin: str) -> None:
    window = browser.new_context(java_script_enabled=False)
    tab = open_page(window, origin, "gallery/graphs/first_graph.html")
    expect(tab.locator("form.predict")).to_be_hidden()
    expect(tab.locator("details.solution")).to_be_visible()
    window.close()
