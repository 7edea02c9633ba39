"""A figure shows the line that made a variable, and none where that is not certain; a loop's variable names no tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.gallery.scrapers import find_assignments, find_loop_variables, find_statement

SCRIPT = '''"""Title"""
x = make(1)
with mode():
    y, z = x * 2, (
        x * 3
    )
total = 0
for i in range(3):
    total = total + x
    new = i
def f():
    inner = 1
x = x + 1
data[0] = 5
late = 1
'''


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return str(path)


def test_the_last_line_that_assigned(script: str) -> None:
    assert find_assignments(script, 5)["x"].text == "x = make(1)"
    assert find_assignments(script, 14)["x"].text == "x = x + 1"


def test_a_statement_of_several_lines_is_cut(script: str) -> None:
    found = find_assignments(script, 14)
    assert found["y"] == found["z"] == ("y, z = x * 2, ( …", 4, 6)


def test_nothing_where_a_loop_may_have_been_last(script: str) -> None:
    found = find_assignments(script, 14)
    assert "total" not in found
    assert found["new"] == ("new = i", 10, 10)


def test_neither_later_lines_nor_functions_nor_items(script: str) -> None:
    assert not find_assignments(script, 14).keys() & {"late", "inner", "data"}


@pytest.mark.parametrize(
    ("line", "statement"),
    [
        (3, ("with mode():", 3, 3)),
        (5, ("y, z = x * 2, ( …", 4, 6)),
        (8, ("for i in range(3):", 8, 8)),
        (9, ("total = total + x", 9, 9)),
        (12, ("inner = 1", 12, 12)),
    ],
)
def test_the_statement_of_a_line(script: str, line: int, statement: tuple[str, int, int]) -> None:
    assert find_statement(script, line) == statement


def test_variables_of_a_loop_alone(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("for a, (b, c) in pairs:\n    a.grad = None\n    c[0] = 1\n    b = 2\n")
    assert find_loop_variables(str(path)) == {"a", "c"}
