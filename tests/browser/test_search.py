"""The search puts the page first that a reader looks for: by a name, by a message, whole or its beginning, by a symptom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import Visit, new_tab, open_page

from error_pages import ErrorPage, all_of, message, with_symptoms
from markup import read
from sources import ROOT


def each(pages: list[ErrorPage]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("wanted", [pytest.param(page, id=Path(page.address).stem) for page in pages])


@pytest.fixture(scope="module")
def results(browser: Browser) -> Iterator[Page]:
    """A tab for the pages of results, which keeps the index in its cache. What was searched for stays in its storage."""
    with browser.new_context() as context:
        yield new_tab(context)


def first_result(results: Page, origin: str, query: str) -> str:
    """The address, below the site's root, of the best result. Its fragment is left out."""
    results.goto(f"{origin}/search.html?q={quote(query)}")
    link = results.locator("#search-results li a").first
    expect(link, f"nothing found for {query!r}").to_be_visible()
    return link.evaluate("link => link.href").removeprefix(f"{origin}/").partition("#")[0]


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
def test_a_whole_message(results: Page, origin: str, site: Path, wanted: ErrorPage) -> None:
    whole = message(wanted.title, read(site / wanted.address))
    assert whole and first_result(results, origin, whole) == wanted.address


@each(all_of(ROOT))
def test_the_first_six_words_of_a_message(results: Page, origin: str, wanted: ErrorPage) -> None:
    assert first_result(results, origin, " ".join(wanted.title.split()[:6])) == wanted.address


@each(with_symptoms(ROOT))
def test_a_symptom(results: Page, origin: str, wanted: ErrorPage) -> None:
    found = {symptom: first_result(results, origin, symptom) for symptom in wanted.symptoms}
    assert found == dict.fromkeys(wanted.symptoms, wanted.address)
