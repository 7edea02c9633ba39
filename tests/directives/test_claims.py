"""The sentence about a page's asserts: its number, and its place at the very end of the text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

Page = Callable[[str], BeautifulSoup]
PAGES_WITH_ASSERTS = ["graph_of_a_product", "one_assert", "exercise", "exercise_at_the_end"]


def test_each_assert_statement_counts_once(page: Page) -> None:
    """Hidden, over several lines, in a loop that runs twice, in a function: four."""
    (claims,) = page("graph_of_a_product").select("p.claims")
    assert claims.get_text().startswith("4 asserts ran on this page")


def test_one_assert_is_in_the_singular(page: Page) -> None:
    (claims,) = page("one_assert").select("p.claims")
    assert claims.get_text().startswith("One assert ran on this page")


def test_a_page_without_asserts_does_not_claim_that_all_of_none_hold(page: Page) -> None:
    assert not page("no_assert").select("p.claims")


@pytest.mark.parametrize("name", PAGES_WITH_ASSERTS)
def test_the_sentence_stands_right_before_the_downloads(page: Page, name: str) -> None:
    (claims,) = page(name).select("p.claims")
    assert "sphx-glr-footer" in claims.find_next_sibling().get("class", [])
    assert not claims.find_parent("details")
