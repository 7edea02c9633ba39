"""A question stands before the fold that has its answer, and its form says what is right in a way that a page can show."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document

from atlas.directives.fold import Fold, details, fold_mark
from atlas.directives.predict import OutOfSolutions, field, prediction

Page = Callable[[str], BeautifulSoup]


def _asked(question: str) -> prediction:
    return prediction("", question=question, answer=["1"], words=[])


def test_questions_move_before_the_fold_in_their_order() -> None:
    document = new_document("page")
    document += nodes.section(
        "", nodes.paragraph("", "Text."), fold_mark(kind="solution", summary="S"), _asked("a"), _asked("b")
    )
    document[0] += nodes.literal_block("x", "x")
    Fold(document).apply()
    OutOfSolutions(document).apply()
    assert [node.get("question") for node in document[0].findall(prediction)] == ["a", "b"]
    assert [type(node) for node in document[0].children] == [nodes.paragraph, prediction, prediction, details]


def test_a_question_without_a_fold_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    document = new_document("page")
    document += nodes.section("", nodes.literal_block("x", "x"), _asked("a"))
    OutOfSolutions(document).apply()
    assert "put its cell below '.. solution::'" in caplog.text
    assert not list(document.findall(prediction))


def test_on_a_page_it_is_hidden_until_its_script_runs(page: Page) -> None:
    whole = page("exercise")
    (form,) = whole.select("form.predict")
    assert form.has_attr("hidden") and not form.find_parent("details")
    assert json.loads(form.select_one("script").string)["answer"] == ["4"]
    assert form.label.get_text(strip=True) == "What is 2 + 2?"
    assert form.find_next("details") is whole.select_one("details.solution")
    assert "predict" not in whole.select_one("article pre").get_text()
    scripts = [script.get("src", "") for script in whole.select("script")]
    assert any("predict.js" in source for source in scripts)
    assert not any("predict.js" in script.get("src", "") for script in page("one_assert").select("script"))


def test_text_in_a_question_is_no_markup() -> None:
    form = BeautifulSoup(field("Is ``a < b``, <b>?", ["</form>"], ["</form>", "x & y"]), "html.parser")
    assert form.label.span.decode_contents() == "Is <code>a &lt; b</code>, &lt;b&gt;?"
    assert [option.get_text() for option in form.select("option")] == ["", "</form>", "x & y"]
    assert json.loads(form.select_one("script").string)["answer"] == ["</form>"]
