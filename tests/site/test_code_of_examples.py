"""An example's code fits its column, in short cells without holes. Its text shows no prompt: what is shown as code is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

from markup import code_cells, read

COLUMN = 88
LINES = 50  # of a cell
LINES_OF_A_FOLD = 160
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find_faults_of_page(page: BeautifulSoup) -> Iterator[str]:
    """In what a reader sees of the code; outputs may be as long as they are."""
    for cell in code_cells(page):
        code, is_folded = cell.get_text(), cell.find_parent("details", class_="how-measured")
        lines = [line.strip() for line in code.splitlines()]
        if not code.strip():
            yield "an empty box: all that stood in it was hidden"
        if len(code.strip("\n").splitlines()) > (LINES_OF_A_FOLD if is_folded else LINES):
            yield f"a long cell: {lines[0]}"
        yield from (f"a long line: {line}" for line in code.splitlines() if len(line.rstrip()) > COLUMN)
        for before, after in pairwise(ast.parse(code).body):
            most = 2 if isinstance(before, _DEFINITIONS) or isinstance(after, _DEFINITIONS) else 1
            if "\n" * (most + 2) in "\n".join(lines[before.end_lineno - 1 : after.lineno]):
                yield f"a hole, take out the empty line above it: {lines[after.lineno - 1]}"


def find_faults_of_script(script: Path) -> Iterator[str]:
    """In its text, and in what stands alone on a line to show its value: only that of a cell's last statement is shown."""
    text = script.read_text(encoding="utf-8")
    _, blocks = split_code_and_text_blocks(str(script))
    prose = [line for block in blocks if block.type == "text" for line in block.content.splitlines()]
    cells = [ast.parse(block.content).body for block in blocks if block.type == "code"]
    alone = [statement for cell in cells for statement in cell[:-1] if isinstance(statement, ast.Expr)]
    yield from (
        f"a heading and its text in one: {line}" for line in re.findall(r"^# [-=~]{3,} +\S.*", text, re.MULTILINE)
    )
    yield from (f"a session that was never run: {line}" for line in prose if ">>>" in line)
    yield from (f"a sentence of the template: {line}" for line in re.findall(r".*\bTo write:.*", text, re.IGNORECASE))
    for statement in alone:
        if not any(isinstance(part, ast.Call) for part in ast.walk(statement)):
            yield f"not shown, move it to the end of its cell: {ast.unparse(statement)}"


def test_an_example_has_no_fault(site: Path, root: Path, script: str) -> None:
    page = read(site / "gallery" / Path(script).with_suffix(".html"))
    assert code_cells(page)
    found = [*find_faults_of_page(page), *find_faults_of_script(root / "examples" / script)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (f"x = '{'y' * (COLUMN - 6)}'\n", None),
        (f"x = '{'y' * (COLUMN - 5)}'\n", "a long line: x = 'y"),
        ("\n", "an empty box"),
        ("x\n" * LINES, None),
        ("x\n" * (LINES + 1), "a long cell: x"),
        ("x = 1\n\n\ny = 2", "a hole, take out the empty line above it: y = 2"),
        ("def f():\n    pass\n\n\n\ny = f()", "above it: y = f()"),
    ],
)
def test_a_fault_of_a_page_is_found(code: str, said: str | None) -> None:
    html = f'<div class="highlight"><pre><span></span>{code}</pre></div>'
    output = f'<div class="sphx-glr-script-out"><div class="highlight"><pre>{"z" * 200}</pre></div></div>'
    found = list(find_faults_of_page(BeautifulSoup(html + output, "html.parser")))
    assert any(said in fault for fault in found) if said else not found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x\n# hidden\nassert x\n", ["x"]),
        ("x.T\nx\n", ["x.T"]),
        ("print(x)\nf(x).T\nassert x\n", []),
        ("# %%\n# Title\n# ----- Text\n", ["# ----- Text"]),
        ('x = ">>> in code"\n\n# %%\n# Text::\n#\n#    >>> 2\n\ny = 1\n', ["   >>> 2"]),
        ("# %%\n# **To write: the mistake**\n", ["# **To write: the mistake**"]),
    ],
)
def test_a_fault_of_a_script_is_found(tmp_path: Path, text: str, found: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(f'"""\nTitle\n=====\n"""\n\n{text}')
    assert [fault.partition(": ")[2] for fault in find_faults_of_script(script)] == found
