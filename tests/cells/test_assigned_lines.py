"""A figure shows the line that made a variable, and none where that is not certain; a loop's variable names no tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.cells.assigned_lines import lines_of_names, loop_variables

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
    path.write_text(SCRIPT)
    return str(path)


def test_the_last_line_that_assigned(script: str) -> None:
    assert lines_of_names(script, 5)["x"] == "x = make(1)"
    assert lines_of_names(script, 14)["x"] == "x = x + 1"


def test_a_statement_of_several_lines_is_cut(script: str) -> None:
    lines = lines_of_names(script, 14)
    assert lines["y"] == lines["z"] == "y, z = x * 2, ( …"


def test_nothing_where_a_loop_may_have_been_last(script: str) -> None:
    lines = lines_of_names(script, 14)
    assert "total" not in lines
    assert lines["new"] == "new = i"


def test_neither_later_lines_nor_functions_nor_items(script: str) -> None:
    assert not lines_of_names(script, 14).keys() & {"late", "inner", "data"}


def test_variables_of_a_loop_alone(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("for a, (b, c) in pairs:\n    a.grad = None\n    c[0] = 1\n    b = 2\n")
    assert loop_variables(str(path)) == {"a", "c"}
