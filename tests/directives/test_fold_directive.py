"""A solution is folded away with all that belongs to it, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import directives
from docutils.utils import new_document

from atlas.directives.fold import Fold, HowMeasured, details, fold_mark

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


def folded(*after: nodes.Node) -> list[str]:
    """What stands in the section after the transform: for a fold what it holds, for anything else its class."""
    document = new_document("page")
    document += nodes.section("", fold_mark(kind="how-measured", summary="It measures."), *after)
    Fold(document).apply()
    return [
        " ".join(type(child).__name__ for child in node.children)
        if isinstance(node, details)
        else type(node).__name__
        for node in document[0].children
    ]


def test_code_that_measures_is_folded_with_its_outputs_up_to_the_next_text() -> None:
    code, output = nodes.literal_block("x = 1", "x = 1"), nodes.container("", nodes.literal_block("1", "1"))
    after = [code, output, nodes.literal_block("y = 2", "y = 2"), nodes.paragraph("", "Text."), code.deepcopy()]
    assert folded(*after) == ["literal_block container literal_block", "paragraph", "literal_block"]


def test_the_next_mark_begins_a_fold_of_its_own() -> None:
    code = nodes.literal_block("x = 1", "x = 1")
    mark = fold_mark(kind="how-measured", summary="It measures something else.")
    assert folded(code, mark, code.deepcopy()) == ["literal_block", "literal_block"]


def test_what_stands_at_the_foot_is_not_folded() -> None:
    foot = nodes.container(classes=["sphx-glr-footer"])
    assert folded(nodes.literal_block("x = 1", "x = 1"), foot) == ["literal_block", "container"]


@pytest.mark.parametrize(("sentence", "refused"), [("It fills ``.grad``.", True), ("It fills .grad.", False)])
def test_markup_in_the_line_of_a_fold_is_refused(sentence: str, refused: bool) -> None:
    """The line is shown as it stands, so a reader would see the backticks."""
    directives.register_directive("how-measured", HowMeasured)
    settings = {"report_level": 5, "halt_level": 5}
    document = publish_doctree(f".. how-measured:: {sentence}\n", settings_overrides=settings)
    assert ("leave out the markup" in document.astext()) is refused
