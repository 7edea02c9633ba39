"""The sentence about a page's asserts: its number, and its place at the very end of the text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup
from docutils.core import publish_doctree
from docutils.parsers.rst import directives

from atlas.directives.claims import Claims, claims

Page = Callable[[str], BeautifulSoup]
PAGES_WITH_ASSERTS = ["graph_of_a_product", "one_assert", "exercise", "exercise_at_the_end"]


def test_each_assert_statement_counts_once(page: Page) -> None:
    """Hidden, over several lines, in a loop that runs twice, in a function: four."""
    (claims,) = page("graph_of_a_product").select("p.claims")
    assert claims.get_text().startswith("4 asserts ran on this page")


def test_one_assert_is_in_the_singular(page: Page) -> None:
    (claims,) = page("one_assert").select("p.claims")
    assert claims.get_text().startswith("One assert ran on this page")


@pytest.mark.parametrize(
    ("numbers", "said", "count"),
    [
        ("5 0 0", "5 asserts ran on this page when it was built, and none failed.", 5),
        (
            "5 0 0 2",
            "5 asserts ran on this page when it was recorded, 2 of them again when it was built, and none failed.",
            2,
        ),
        ("5 0 0 5", "5 asserts ran on this page when it was built, and none failed.", 5),
    ],
)
def test_what_ran_on_another_machine_is_not_said_to_have_run_here(numbers: str, said: str, count: int) -> None:
    directives.register_directive("claims", Claims)
    (found,) = publish_doctree(f".. claims:: {numbers}\n").findall(claims)
    assert (found.astext(), found["count"]) == (said, count)


def test_a_page_without_asserts_does_not_claim_that_all_of_none_hold(page: Page) -> None:
    assert not page("no_assert").select("p.claims")


@pytest.mark.parametrize("name", PAGES_WITH_ASSERTS)
def test_the_sentence_stands_right_before_the_downloads(page: Page, name: str) -> None:
    (claims,) = page(name).select("p.claims")
    assert "sphx-glr-footer" in claims.find_next_sibling().get("class", [])
    assert not claims.find_parent("details")
