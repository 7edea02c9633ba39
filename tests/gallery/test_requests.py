"""What a cell asks for in comments, and where; a page shows its code without them."""

from __future__ import annotations

import pytest

from atlas.gallery.requests import Request, has_request, read_requests, without_requests
from atlas.gallery.scripts import PageFault


def _found(code: str, first_line: int = 1) -> list[Request]:
    return list(read_requests(code, first_line, "page.py"))


def test_several_in_order_with_the_lines_of_the_file() -> None:
    code = "x = 1\n# varies: the time\n\n# graph: x -- A title\n# figure: A line\n"
    graph = Request("graph", 13, "A title", ("x",))
    assert _found(code, 10) == [Request("varies", 11, "the time"), graph, Request("figure", 14, "A line")]


def test_graph_of_several_roots_with_options() -> None:
    title, options = "Two roots (and more) -- at once", frozenset({"AccumulateGrad", "saved"})
    found = _found(f"# graph: a, b (AccumulateGrad, saved) -- {title}")
    assert found == [Request("graph", 1, title, ("a", "b"), options)]


@pytest.mark.parametrize(
    ("comment", "code", "words"),
    [
        ("x.grad -- What is it?", "x.grad", ()),
        ('"a" if x else "b c" [a | b c] -- Which?', '"a" if x else "b c"', ("a", "b c")),
        ("[1, 2] -- Which two?", "[1, 2]", ()),
    ],
)
def test_questions(comment: str, code: str, words: tuple[str, ...]) -> None:
    question = comment.partition(" -- ")[2]
    assert _found(f"# predict: {comment}") == [Request("predict", 1, question, code=code, words=words)]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("# figure: A line\n#   that rises\n#     and falls\nplot()\n#   no more", "A line that rises and falls"),
        ("# figure: A line\n# an ordinary comment\n", "A line"),
        ("# graph: y -- A title\n#   of two lines", "A title of two lines"),
    ],
)
def test_words_go_on_over_indented_lines(code: str, words: str) -> None:
    (request,) = _found(code)
    assert request.text == words


OTHERS = ["    # graph: y", "x = 1  # graph: y", "# graphs: y", "# the graph: y", "# Graph: y", "#  figure: x", "\n"]


@pytest.mark.parametrize("code", OTHERS)
def test_other_comments_ask_for_nothing(code: str) -> None:
    assert _found(code) == [] and not has_request("graph", code)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("# graph:", "a graph needs a title"),
        ("# graph: y - A hyphen", "a graph needs a title"),
        ("# graph: y (saved, sums) -- T", "unknown option 'sums'; there are: AccumulateGrad, saved"),
        ("# figure:", "say what to see in the figure"),
        ("# varies:  ", "say what varies, and why"),
        ("# predict: x", "ask for the value of an expression"),
    ],
)
def test_a_request_that_is_none_is_named_with_file_and_line(code: str, says: str) -> None:
    with pytest.raises(PageFault) as error:
        _found(f"x = 1\n{code}\n", 7)
    assert str(error.value).startswith("page.py:8: ") and says in str(error.value)


def test_a_script_whose_output_varies_is_known() -> None:
    assert has_request("varies", "x = 1\n# figure: A line\n#varies: the time\n")
    assert not has_request("varies", "# figure: A line that varies: see below\nfor x in y:\n    # varies: inside\n")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("x = 1\n# graph: x -- A title\n#   of two lines\ny = 2", "x = 1\ny = 2"),
        ("x = 1\n\n# figure: A\n# varies: B\n\ny = 2", "x = 1\n\ny = 2"),
        ("# predict: x -- What?\n", ""),
        ("# graphs: x\nx  # graph: y", "# graphs: x\nx  # graph: y"),
    ],
)
def test_code_is_shown_without_requests(code: str, shown: str) -> None:
    assert without_requests(code) == shown
