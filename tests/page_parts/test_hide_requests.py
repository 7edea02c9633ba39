"""``hide_requests.without_requests``: the code that a page shows, without the comments that ask the site for something."""

from __future__ import annotations

import pytest

from atlas.cells.request_comments import requests
from atlas.page_parts.hide_requests import without_requests


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("x = 1\n# graph: x -- T\nprint(x)", "x = 1\nprint(x)"),
        ("x = 1\n\n# graph: x -- T\n\nprint(x)", "x = 1\n\nprint(x)"),
        ("\n# varies: times\n\nx = 1\n", "x = 1"),
        ("x = 1\n\n# figure: A line\n#   that rises\n#   and falls\n", "x = 1"),
        ("# graph: x -- T\n# graph: y -- T\nx = 1", "x = 1"),
        ("#graph: x -- T\nx = 1", "x = 1"),
        ("# graph: x -- T", ""),
    ],
)
def test_requests_and_their_holes_go(code: str, shown: str) -> None:
    assert without_requests(code) == shown


@pytest.mark.parametrize(
    "code",
    [
        "x = 1  # graph: x",
        "# graphs: x\nx = 1",
        "# Note:\n#   indented\nx = 1",
        "for x in y:\n    # graph: x\n    print(x)",
        "def f():\n    pass\n\n\ndef g():\n    pass",
    ],
)
def test_other_code_stays_as_it_is(code: str) -> None:
    assert without_requests(code) == code


def test_blank_lines_elsewhere_in_the_cell_stay() -> None:
    """Two blank lines between functions, or in a string, are part of the code that ran."""
    code = 'def f():\n    return 1\n\n\ntext = """a\n\n\nb"""'
    assert without_requests(f"{code}\n\n# graph: y -- T\n") == code


@pytest.mark.parametrize("comment", ["# graph: x -- T", "# figure: A\n#   b", "#figure: A", "# varies: A\n#   b"])
def test_what_is_answered_is_what_is_hidden(comment: str) -> None:
    assert list(requests(comment, 1, "page.py"))
    assert without_requests(f"{comment}\nx = 1") == "x = 1"
