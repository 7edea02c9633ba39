"""The search puts the page first that a reader looks for: by a name, by a message, whole or its beginning, by a symptom."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from visiting import Visit, open_page

from error_pages import ErrorPage, all_of, message, with_symptoms
from markup import read
from sources import ROOT


def each(pages: list[ErrorPage]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("wanted", [pytest.param(page, id=Path(page.address).stem) for page in pages])


def first_result(context: BrowserContext, origin: str, query: str) -> str:
    """The address, below the site's root, of the best result. Its fragment is left out."""
    tab: Page = open_page(context, origin, f"search.html?q={quote(query)}")
    link = tab.locator("#search-results li a").first
    expect(link, f"nothing found for {query!r}").to_be_visible()
    address = link.evaluate("link => link.href")
    tab.close()
    return address.removeprefix(f"{origin}/").partition("#")[0]


def test_a_name(fresh: BrowserContext, origin: str) -> None:
    visit = Visit()
    tab = open_page(fresh, origin, "search.html", visit)
    tab.get_by_role("textbox", name="Search").fill("retain_grad")
    tab.keyboard.press("Enter")
    results = tab.locator("#search-results li")
    expect(results.first).to_be_visible()
    expect(tab.locator("#search-results")).to_contain_text("Leaf tensors")
    assert not visit.other_sites + visit.errors


@each(all_of(ROOT))
def test_a_whole_message(fresh: BrowserContext, origin: str, site: Path, wanted: ErrorPage) -> None:
    whole = message(wanted.title, read(site / wanted.address))
    assert whole and first_result(fresh, origin, whole) == wanted.address


@each(all_of(ROOT))
def test_the_first_six_words_of_a_message(fresh: BrowserContext, origin: str, wanted: ErrorPage) -> None:
    assert first_result(fresh, origin, " ".join(wanted.title.split()[:6])) == wanted.address


@each(with_symptoms(ROOT))
def test_a_symptom(fresh: BrowserContext, origin: str, wanted: ErrorPage) -> None:
    found = {symptom: first_result(fresh, origin, symptom) for symptom in wanted.symptoms}
    assert found == dict.fromkeys(wanted.symptoms, wanted.address)
