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
    table.get_by_label("Name, sign or node").fill("linalg norm")
    names = table.locator(f"{SHOWN} > th").all_text_contents()
    said = [row.lower() for row in table.locator(SHOWN).all_text_contents()]  # other names and nodes count, too
    assert "linalg.matrix_norm" in names and all("linalg" in row and "norm" in row for row in said)
    expect(table.locator(".filter output")).to_contain_text(f"{len(names)} of ")


def test_the_filter_by_kind(table: Page) -> None:
    table.get_by_label("that").select_option("are silently wrong somewhere")
    names = table.locator(f"{SHOWN} > th").all_inner_texts()
    assert "kron" in names and len(names) < 20
    table.get_by_label("that").select_option("all operators")
    assert table.locator(SHOWN).count() > 500


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ("@", "op-matmul"),
        ("LinalgQrBackward0", "op-linalg-qr"),
        ("torch.nn.functional.softmax", "op-softmax"),
        ("torch.linalg.qr", "op-linalg-qr"),
    ],
)
def test_the_filter_knows_signs_nodes_and_full_names(table: Page, asked: str, row: str) -> None:
    table.get_by_label("Name, sign or node").fill(asked)
    expect(table.locator(f"tr#{row}")).to_be_visible()
    assert table.locator(SHOWN).count() < 15


def test_the_address_keeps_what_was_asked(table: Page, fresh: BrowserContext) -> None:
    table.get_by_label("Name, sign or node").fill("pool")
    table.get_by_label("that").select_option("keep the result")
    shown = table.locator(SHOWN).count()
    assert shown
    again = new_tab(fresh)
    again.goto(table.url)
    expect(again.get_by_label("Name, sign or node")).to_have_value("pool")
    assert again.locator(SHOWN).count() == shown


def test_nothing_found_says_what_to_do(table: Page) -> None:
    table.get_by_label("Name, sign or node").fill("no operator is called so")
    expect(table.locator(".filter output")).to_contain_text("traceback")
    expect(table.locator(".operators")).to_be_hidden()


def test_the_table_is_whole_without_javascript(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/{PAGE}")
        assert tab.locator(".operators tbody tr").count() > 500
        assert not tab.locator(".filter").count()


def test_a_head_sorts_its_column_and_back(table: Page) -> None:
    def column() -> list[str]:
        return table.locator(f"{SHOWN} > td:last-child").all_text_contents()

    before = column()
    head = table.get_by_role("columnheader", name="error")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    numbers = [float(text) for text in column() if text not in ("–", "nan")]
    assert numbers == sorted(numbers) and column()[-1] in ("–", "nan")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert table.url.endswith("?sort=-9")
    head.get_by_role("button").click()
    assert column() == before


def test_a_node_leads_to_its_formula(table: Page) -> None:
    table.get_by_label("Name, sign or node").fill("linalg.qr")
    table.locator("tr#op-linalg-qr").get_by_role("link", name="Linalg").last.click()
    expect(table.locator("tr#node-LinalgQrBackward0")).to_be_in_viewport()


@pytest.mark.parametrize("asked", ["MulBackward0", "mul.Tensor"])
def test_a_formula_is_found_by_its_node_and_its_operator(fresh: BrowserContext, origin: str, asked: str) -> None:
    formulas = open_page(fresh, origin, "reference/formulas.html")
    formulas.get_by_label("Node or operator").fill(asked)
    expect(formulas.locator("tr#node-MulBackward0")).to_be_visible()
    assert formulas.locator(".formulas tbody tr:visible").count() < 30
