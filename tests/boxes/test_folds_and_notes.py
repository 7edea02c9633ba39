"""What a directive and a transform make of nodes that no page of a tiny site has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import directives
from docutils.utils import new_document

from atlas.boxes import Claims, claims
from atlas.folds import AskBeforeSolution, FoldWhatFollows, details, fold_mark, make_question_form, prediction
from compare_builds import find_differences

SAID = {
    "5 0 0": "5 asserts ran on this page when it was built, and all passed.",
    "5 0 0 2": "5 asserts ran on this page when it was recorded, 2 of them again when it was built, and all passed.",
    "5 1 2": "5 asserts ran on this page when it was built. 2 failed on purpose, and the others passed. "
    "One of them is about an error that the page raises on purpose.",
}


@pytest.mark.parametrize("numbers", SAID)
def test_what_ran_on_another_machine_is_not_said_to_have_run_here(numbers: str) -> None:
    directives.register_directive("claims", Claims)
    (found,) = publish_doctree(f".. claims:: {numbers}\n").findall(claims)
    assert (found.astext(), found["count"]) == (SAID[numbers], 2 if numbers == "5 0 0 2" else 5)


# -- Folds ----------------------------------------------------------------------------------------

CODE = nodes.literal_block("x = 1", "x = 1")
OUTPUT = nodes.container("", nodes.literal_block("1", "1"))
FOOT = nodes.container(classes=["sphx-glr-footer"])


def fold_marked(*after: nodes.Node, kind: str = "how-measured") -> list[nodes.Node]:
    """What stands in the section after the transforms, a mark being its first node before."""
    document = new_document("page")
    document += nodes.section("", fold_mark(kind=kind, summary="It."), *(node.deepcopy() for node in after))
    FoldWhatFollows(document).apply()
    AskBeforeSolution(document).apply()
    return document[0].children


@pytest.mark.parametrize(
    ("after", "left"),
    [
        ([CODE, OUTPUT, CODE, nodes.paragraph("", "Text."), CODE], [3, "paragraph", "literal_block"]),
        ([CODE, fold_mark(kind="how-measured", summary="It, too."), CODE], [1, 1]),
        ([CODE, FOOT], [1, "container"]),
    ],
    ids=["code with its outputs up to the next text", "up to the next mark", "nothing of the foot"],
)
def test_code_that_measures_is_folded(after: list[nodes.Node], left: list[object]) -> None:
    """A fold is named here by how much is in it, anything else by its class."""
    found = fold_marked(*after)
    assert [len(node) if isinstance(node, details) else type(node).__name__ for node in found] == left


def test_questions_move_before_the_fold_in_their_order() -> None:
    asked = [prediction("", question=question, answer=["1"], words=[]) for question in "ab"]
    *questions, fold = fold_marked(*asked, CODE, kind="solution")
    assert [question["question"] for question in questions] == ["a", "b"]
    assert isinstance(fold, details) and len(fold) == 1


def test_text_in_a_question_is_no_markup() -> None:
    form = make_question_form("Is ``a < b``, <b>?", ["</form>"], ["</form>", "x & y"])
    page = BeautifulSoup(form, "html.parser")
    assert page.label.span.decode_contents() == "Is <code>a &lt; b</code>, &lt;b&gt;?"
    assert [option.get_text() for option in page.select("option")] == ["", "</form>", "x & y"]
    assert json.loads(page.select_one("script").string)["answer"] == ["</form>"]


# -- What varies ----------------------------------------------------------------------------------

BOX = '<div class="varies"><p>{}<br>s</p></div>'


def write_page(folder: Path, body: str) -> Path:
    folder.mkdir()
    (folder / "page.html").write_text(f"<h1>Title</h1>\n{body}\n<p>Text</p>")
    return folder


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (BOX.format(1), BOX.format(2), True),
        (f"<p>a</p>{BOX.format(1)}", f"{BOX.format(1)}<p>a</p>", False),
        (BOX.format(1), BOX.format("<b>1</b>") + "<b>2</b>", False),
    ],
    ids=["another content", "another place", "something after it"],
)
def test_what_a_box_holds_may_vary_and_the_box_may_not(tmp_path: Path, first: str, second: str, same: bool) -> None:
    builds = write_page(tmp_path / "first", first), write_page(tmp_path / "second", second)
    assert (not find_differences(*builds)) is same
