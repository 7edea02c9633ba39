"""The form of a function computes what the function does, whatever is asked, and its address keeps what was asked."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from visiting import Visit, open_page, too_wide

from sources import ROOT

SCRIPT, PAGE = ROOT / "examples/memory/how_much_memory.py", "gallery/memory/how_much_memory.html"
GIB = 2**30


@pytest.fixture(scope="module")
def function() -> Callable[..., dict[str, float]]:
    """The function of the script, of which nothing below it runs."""
    tree, names = ast.parse(SCRIPT.read_text(encoding="utf-8")), {}
    end = next(at for at, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef)) + 1
    exec(compile(ast.Module(tree.body[:end], []), SCRIPT, "exec"), names)
    return names["training_memory"]


def test_twenty_random_inputs(
    opened: Callable[[str], Page], visit: Visit, function: Callable[..., dict[str, float]]
) -> None:
    tab, choose = opened(PAGE), random.Random(0)
    form = tab.locator("form.calculator")
    for _ in range(20):
        given: dict[str, int | str] = {}
        for field in form.locator("input, select").all():
            name = field.get_attribute("name")
            if field.evaluate("field => field.localName") == "select":
                given[name] = choose.choice(field.locator("option").all_text_contents())
                field.select_option(given[name])
            else:
                given[name] = round(2 ** choose.uniform(0, 17))
                field.fill(str(given[name]))
        shown = [float(text) for text in form.locator("td, output").all_text_contents()]
        assert shown == pytest.approx([bytes / GIB for bytes in function(**given).values()], abs=0.0051), given
    again = opened(f"{PAGE}{tab.evaluate('location.search')}").locator("form.calculator td, form.calculator output")
    assert [float(text) for text in again.all_text_contents()] == shown
    form.get_by_label("batch").fill("")
    expect(form.locator("output")).to_have_text("?")
    assert not visit.errors


def test_without_scripts_the_first_result_is_there(
    scriptless: BrowserContext, phone: BrowserContext, origin: str, function: Callable[..., dict[str, float]]
) -> None:
    form = open_page(scriptless, origin, PAGE).locator("form.calculator")
    expect(form.locator("output")).to_have_text(f"{function()['peak'] / GIB:.2f}")
    expect(form.get_by_label("batch")).to_be_disabled()
    assert not too_wide(open_page(phone, origin, PAGE))
