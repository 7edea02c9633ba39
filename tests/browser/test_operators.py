"""The table of operators: a search leads to a row, the filter keeps the rows that it should, and a phone can scroll it."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import new_tab, open_page

PAGE = "reference/operators.html"
SHOWN = ".operators tbody tr:visible"


@pytest.mark.parametrize(
    ("name", "row"), [("linalg.qr", "op-linalg-qr"), ("kron", "op-kron"), ("cumsum", "op-cumsum")]
)
def test_a_search_for_a_name_finds_its_row(fresh: BrowserContext, origin: str, name: str, row: str) -> None:
    tab = open_page(fresh, origin, f"search.html?q={quote(name)}")
    first = tab.locator(".search-results a", has_text="Operators").first
    expect(first).to_be_visible()
    first.click()
    expect(tab.locator(f"tr#{row}")).to_be_in_viewport()


@pytest.fixture
def table(fresh: BrowserContext, origin: str) -> Page:
    return open_page(fresh, origin, PAGE)


def test_the_filter_by_name(table: Page) -> None:
    table.get_by_label("Name").fill("linalg norm")
    names = table.locator(f"{SHOWN} > th").all_text_contents()
    assert names and all("linalg" in name and "norm" in name for name in names)
    expect(table.locator(".filter output")).to_contain_text(f"{len(names)} of ")


def test_the_filter_by_kind(table: Page) -> None:
    table.get_by_label("that").select_option("silently wrong after a change")
    assert table.locator(f"{SHOWN} > th").all_text_contents() == ["kron"]
    table.get_by_label("that").select_option("all operators")
    assert table.locator(SHOWN).count() > 500


def test_the_table_is_whole_without_javascript(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/{PAGE}")
        assert tab.locator(".operators tbody tr").count() > 500
        assert not tab.locator(".filter").count()
