"""Filters of lists and tables leave what was asked for, and keep it in the address; heads sort a table."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Page, expect
from visiting import new_tab, open_page

LISTS = {
    "reference/glossary.html": ("Filter the terms", "view", "dl.glossary > dt"),
    "reference/names.html": ("Filter the names", "grad", "dl.names-used > dt"),
    "then-and-now.html": ("Filter the rows", "zero_grad", "article section section section"),
    "gallery/errors/index.html": ("Filter the list", "Batch, size", ".symptoms li"),
}
"""The label of the filter, what to type, and the entries; of names the heads alone are looked into."""

TAGS, TABLE = "gallery/index.html", "reference/operators.html"
SHOWN, ROWS = ".tagged li:visible", ".operators tbody tr:visible"
NAME, FIRST = "Name, sign or node", 30  # so many rows are shown before more is asked for


@pytest.fixture
def tags(opened: Callable[[str], Page]) -> Page:
    return opened(TAGS)


@pytest.fixture
def table(opened: Callable[[str], Page]) -> Page:
    return opened(TABLE)


# -- Lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", LISTS)
def test_a_list_shows_what_has_the_words(opened: Callable[[str], Page], address: str) -> None:
    label, typed, entries = LISTS[address]
    tab, words = opened(address), typed.lower().split(", ")
    box, count = tab.get_by_label(label), tab.locator(".filter output")
    every = run_script(tab, "listEntries", entries)
    expect(count).to_contain_text(re.compile(rf"^{len(every)} \w+$"))
    box.fill(typed.upper())
    found = run_script(tab, "listEntries", entries)
    assert 0 < len(found) < len(every) / 2 and all(word in text for text in found for word in words)
    if address != "reference/names.html":
        assert len(found) == sum(all(word in text for word in words) for text in every)
    expect(count).to_contain_text(f"{len(found)} of {len(every)} ")
    assert tab.locator(entries).filter(visible=True).count() == len(found), "a fold with one left opens"
    box.fill("no entry has these words")
    parts = f"{entries}, dl.glossary > *, dl.names-used > *, .symptoms details"
    assert not tab.locator(parts).filter(visible=True).count()
    box.fill("")
    assert run_script(tab, "listEntries", entries) == every


def test_a_part_without_an_entry_left_is_not_shown(opened: Callable[[str], Page]) -> None:
    tab = opened("reference/names.html")
    parts = tab.locator("article section section:visible").count()
    tab.get_by_label("Filter the names").fill("Tensor.grad_fn")
    assert tab.locator("article section section:visible").count() == 1 < parts


def test_a_link_within_the_page_finds_its_entry(opened: Callable[[str], Page]) -> None:
    tab = opened("reference/glossary.html")
    tab.get_by_label("Filter the terms").fill("AccumulateGrad")
    expect(tab.locator("#term-Jacobian")).to_be_hidden()
    tab.locator("article li a", has_text="Jacobian").first.click()
    expect(tab.locator("#term-Jacobian")).to_be_in_viewport()
    expect(tab.get_by_label("Filter the terms")).to_have_value("")


def test_the_list_of_errors_is_short_on_a_phone(phone: BrowserContext, origin: str) -> None:
    tab = open_page(phone, origin, "gallery/errors/index.html")
    assert tab.locator(".symptoms li:visible").count() == 0
    assert tab.evaluate("document.documentElement.scrollHeight") < 3 * 844


# -- Tags -----------------------------------------------------------------------------------------


def list_tags(tab: Page) -> list[list[str]]:
    return [text.split(" · ") for text in tab.locator(f"{SHOWN} p + p").all_text_contents()]


def test_pages_have_all_tags_that_are_chosen_and_the_address_keeps_them(tags: Page) -> None:
    number = tags.locator(".tagged li").count()
    tags.get_by_label("error").check()
    tags.get_by_label("in-place").check()
    expect(tags).to_have_url(re.compile(r"\?tag=in-place&tag=error$"))
    shown = list_tags(tags)
    assert 0 < len(shown) < number and all({"error", "in-place"} <= set(own) for own in shown)
    expect(tags.locator(".tagged output")).to_have_text(f"{len(shown)} of {number} pages")
    assert tags.locator(".tagged .chapter:visible").count() == 1
    tags.reload()
    assert list_tags(tags) == shown
    tags.get_by_role("button", name="Show all").click()
    expect(tags).to_have_url(re.compile(r"index\.html$"))
    assert tags.locator(SHOWN).count() == number


def test_by_keyboard_and_a_tag_that_would_leave_nothing_cannot_be_chosen(tags: Page) -> None:
    tags.get_by_label("beginner").focus()
    tags.keyboard.press("Tab")
    tags.keyboard.press("Space")
    expect(tags).to_have_url(re.compile(r"\?tag=graph$"))
    assert all("graph" in own for own in list_tags(tags))
    tags.get_by_label("graph", exact=True).uncheck()
    tags.get_by_label("error").check()
    expect(tags.get_by_label("hooks")).to_be_disabled()
    expect(tags.get_by_label("shapes")).to_be_enabled()


def test_a_page_leads_to_those_with_its_tag_and_a_tag_that_is_none_shows_all(opened: Callable[[str], Page]) -> None:
    tab = opened("gallery/functions/exp_function.html")
    tab.get_by_text("About this page").click()
    tab.locator("p.leads-on").get_by_role("link", name="custom Function", exact=True).click()
    expect(tab.get_by_label("custom Function")).to_be_checked()
    assert {"custom Function"} <= set.intersection(*map(set, list_tags(tab)))
    tab = opened(f"{TAGS}?tag=no-such-tag")
    assert tab.locator(SHOWN).count() == tab.locator(".tagged li").count()


# -- Tables ---------------------------------------------------------------------------------------


def test_a_table_is_filtered_by_name_and_by_kind_and_the_address_keeps_it(table: Page, fresh: BrowserContext) -> None:
    table.mouse.wheel(0, 1500)  # the rows that are left would end above the window
    table.get_by_label(NAME).fill("linalg norm")
    expect(table.locator(ROWS).first).to_be_in_viewport(ratio=1)
    names = table.locator(f"{ROWS} > th").all_text_contents()
    said = [row.lower() for row in table.locator(ROWS).all_text_contents()]  # other names and nodes count, too
    assert "linalg.matrix_norm" in names and all("linalg" in row and "norm" in row for row in said)
    expect(table.locator(".filter output")).to_contain_text(f"{len(names)} of ")
    table.get_by_label(NAME).fill("")
    table.get_by_label("Show").select_option("that are silently wrong somewhere")
    names = table.locator(f"{ROWS} > th").all_text_contents()
    assert "kron" in names and len(names) < 20
    table.get_by_label("Show").select_option("all operators")
    assert table.locator(ROWS).count() == FIRST
    table.get_by_role("button", name="Show all 539").click()
    assert table.locator(ROWS).count() == 539
    table.get_by_label(NAME).fill("pool")
    table.get_by_label("Show").select_option("that keep the result")
    shown = table.locator(ROWS).count()
    again = new_tab(fresh)
    again.goto(table.url)
    expect(again.get_by_label(NAME)).to_have_value("pool")
    assert again.locator(ROWS).count() == shown > 0
    again.get_by_label(NAME).fill("no operator is called so")
    expect(again.locator(".filter output")).to_contain_text("traceback")
    expect(again.locator(".operators")).to_be_hidden()


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ("@", "op-matmul"),
        ("torch.nn.functional.softmax", "op-softmax"),
    ],
)
def test_a_table_knows_signs_nodes_and_full_names(table: Page, asked: str, row: str) -> None:
    table.get_by_label(NAME).fill(asked)
    expect(table.locator(f"tr#{row}")).to_be_visible()
    assert table.locator(ROWS).count() < 15


def test_a_head_sorts_its_column_and_back(table: Page) -> None:
    def list_column() -> list[str]:
        return table.locator(f"{ROWS} > td:last-child").all_text_contents()

    table.get_by_role("button", name="Show all").click()
    before = list_column()
    head = table.get_by_role("columnheader", name="error")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    numbers = [float(text) for text in list_column() if text not in ("–", "nan")]
    assert numbers == sorted(numbers) and list_column()[-1] in ("–", "nan")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert table.url.endswith("?sort=-9")
    table.reload()
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("button").click()
    assert list_column() == before[:FIRST] and not head.get_attribute("aria-sort")
    table.get_by_label("Order").select_option("-9", force=True)  # it is in sight on a phone
    expect(head).to_have_attribute("aria-sort", "descending")


def test_a_search_leads_to_a_row_and_a_node_to_its_formula(opened: Callable[[str], Page]) -> None:
    assert opened("reference/versions.html?name=inplace").locator(".versions tbody tr:visible").count() > 5
    assert opened("reference/formulas.html?sort=-1").locator(".formulas tbody tr:visible").count() == FIRST
    tab = opened("search.html?q=linalg.qr")
    tab.locator(".search-results a", has_text="Operators").first.click()
    expect(tab.locator("tr#op-linalg-qr")).to_be_in_viewport()
    tab.get_by_label(NAME).fill("linalg.qr")
    tab.locator("tr#op-linalg-qr").get_by_role("link", name="Linalg").last.click()
    expect(tab.locator("tr#node-LinalgQrBackward0")).to_be_in_viewport()
    for asked in ("MulBackward0", "mul.Tensor"):
        tab.get_by_label("Node or operator").fill(asked)
        expect(tab.locator("tr#node-MulBackward0")).to_be_visible()
        assert tab.locator(".formulas tbody tr:visible").count() < 30


# -- The script comes, or does not ----------------------------------------------------------------


@pytest.mark.parametrize("address", [*LISTS, TAGS, TABLE])
def test_without_scripts_there_is_no_filter_and_all_is_there(
    scriptless: BrowserContext, origin: str, address: str
) -> None:
    tab = open_page(scriptless, origin, address)
    expect(tab.locator("form.filter")).to_be_hidden()
    shown = {TAGS: SHOWN, TABLE: ROWS}.get(address) or f"{LISTS[address][2]}:visible"
    assert tab.locator(shown).count() == tab.locator(shown.removesuffix(":visible")).count() > 10
