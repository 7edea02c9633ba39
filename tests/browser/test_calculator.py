"""The form of a function computes what the function does, whatever is asked, and its address keeps what was asked."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from visiting import Visit, open_page

from sources import ROOT

PAGE, FIELDS, SHOWN = (
    "gallery/memory/how_much_memory.html",
    ".calculator :is(input, select)",
    (".calculator td", ".calculator output"),
)


def compute(**given: int | str) -> list[float]:
    """What the function of the script says, in GiB; the blocks above it are its tables and text."""
    names: dict[str, Callable[..., dict[str, float]]] = {}
    exec(
        (ROOT / "examples/memory/how_much_memory.py").read_text(encoding="utf-8").partition("import pandas")[0], names
    )
    return [found / 2**30 for found in names["training_memory"](**given).values()]


def read_numbers(tab: Page) -> list[float]:
    return [float(text) for shown in SHOWN for text in tab.locator(shown).all_text_contents()]


def test_random_inputs(opened: Callable[[str], Page], visit: Visit) -> None:
    tab, choose = opened(PAGE), random.Random(0)
    for _ in range(8):
        given: dict[str, int | str] = {}
        for field in tab.locator(FIELDS).all():
            name, options = field.get_attribute("name"), field.locator("option").all_text_contents()
            given[name] = choose.choice(options) if options else round(2 ** choose.uniform(0, 17))
            field.select_option(given[name]) if options else field.fill(str(given[name]))
        assert read_numbers(tab) == pytest.approx(compute(**given), abs=0.0051), given
    assert read_numbers(opened(PAGE + tab.evaluate("location.search"))) == read_numbers(tab)
    last = read_numbers(tab)
    for wrong in ("", "0", "-3"):  # the field is marked, and the last result stays
        tab.get_by_role("spinbutton", name="batch").fill(wrong)
        expect(tab.locator(".calculator input:invalid")).to_have_count(1)
        assert read_numbers(tab) == last
    assert not visit.errors


def test_without_scripts_the_first_result_is_there(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, PAGE)
    assert read_numbers(tab) == pytest.approx(compute(), abs=0.0051)
    expect(tab.get_by_role("spinbutton", name="batch")).to_be_disabled()
