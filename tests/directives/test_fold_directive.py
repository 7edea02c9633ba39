"""A solution is folded away with all that belongs to it, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

Page = Callable[[str], BeautifulSoup]


def test_the_fold_holds_text_code_and_output(page: Page) -> None:
    (fold,) = page("exercise").select("details.solution")
    assert not fold.has_attr("open") and fold.summary.get_text() == "Solution"
    text = fold.get_text()
    for part in ("The text of the solution.", "answer = 2 + 2", "The answer is 4", "the last output of the solution"):
        assert part in text
    assert fold.select(".sphx-glr-script-out") and fold.select("math")


def test_the_fold_begins_at_the_mark_and_ends_with_the_section(page: Page) -> None:
    whole = page("exercise")
    text = whole.select_one("details.solution").get_text()
    assert "Answer the question." not in text
    assert "Not a part of the solution." not in text
    assert not whole.select_one("#what-comes-next").find_parent("details")


@pytest.mark.parametrize("name", ["exercise", "exercise_at_the_end"])
def test_downloads_are_not_folded_with_it(page: Page, name: str) -> None:
    (footer,) = page(name).select(".sphx-glr-footer")
    assert not footer.find_parent("details")


def test_a_solution_in_markdown(page: Page) -> None:
    (fold,) = page("guide").select("details.solution")
    assert fold.get_text().split()[:2] == ["Solution", "It"]
    assert "no part of the solution" not in fold.get_text()
