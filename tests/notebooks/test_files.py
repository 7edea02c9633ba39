"""The notebook and the script of a page have its code in order; the script prints what the page shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from atlas.notebooks.blocks import Code, Text
from atlas.notebooks.files import notebook, script
from atlas.notebooks.own_needs import own_needs

PARTS = [
    Text("# Title\n\nText."),
    Code("import math\nx = 2\nx, x  # twice"),
    Code("print('checked')", shown=False),
    Code("(\n    x\n    + 1\n)"),
    Code("None"),
    Code("import not_installed_here", raises=True),
    Code("print('end')"),
]


def test_the_script_prints_what_the_page_shows(tmp_path: Path) -> None:
    path = tmp_path / "page.py"
    path.write_text(script(PARTS))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "(2, 2)",
        "checked",
        "3",
        "ModuleNotFoundError: No module named 'not_installed_here'",
        "end",
    ]


def test_a_script_that_shows_no_value_needs_no_help() -> None:
    assert "displayhook" not in script([Code("x = 1\nprint(x)")])
    assert "displayhook" not in script([Code("x = 1\nx", shown=False)])


def test_the_notebook_has_what_the_page_shows() -> None:
    made = json.loads(notebook(PARTS))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 4)
    first, *cells = made["cells"]
    assert "%pip install" in "".join(first["source"]) and "not-installed-here" not in "".join(first["source"])
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        ("markdown" if isinstance(part, Text) else "code", part.markdown if isinstance(part, Text) else part.source)
        for part in PARTS
        if isinstance(part, Text) or part.shown
    ]
    assert [cell["metadata"].get("tags") for cell in cells].count(["raises-exception"]) == 1


@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("import atlas.graphs", ["atlas"]),
        ("from atlas import graphs", ["atlas"]),
        ("import atlas_of_others, json", []),
        ("open('data/rows.json')", ["data/rows.json"]),
        ("Path('data').iterdir(); open('data/other.json')", []),
        ("x = '" + "y" * 5000 + "'", []),
        ("x = 'a\\0b'", []),
    ],
)
def test_what_code_needs_of_the_site(tmp_path: Path, code: str, needs: list[str]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/rows.json").write_text("{}")
    assert own_needs(code, tmp_path) == needs
