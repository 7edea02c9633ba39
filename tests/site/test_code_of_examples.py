"""An example's code fits its column, in short cells without holes. Its text shows no prompt: what is shown as code is run."""

from __future__ import annotations

import ast
import re
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


def too_long(page: BeautifulSoup) -> list[str]:
    """The lines of code that a reader would have to scroll for. Outputs may be as long as they are."""
    lines = [line for cell in code_cells(page) for line in cell.get_text().splitlines()]
    return [line for line in lines if len(line.rstrip()) > COLUMN]


def long_cells(page: BeautifulSoup) -> list[str]:
    """The first lines of the cells that are too long for one idea; what measures and is folded away may hold several."""
    found = []
    for cell in code_cells(page):
        lines = cell.get_text().strip("\n").splitlines()
        if len(lines) > (LINES_OF_A_FOLD if cell.find_parent("details", class_="how-measured") else LINES):
            found.append(lines[0])
    return found


def empty_cells(page: BeautifulSoup) -> int:
    """How many boxes for code hold none: all that stood in them was hidden."""
    return sum(not cell.get_text().strip() for cell in code_cells(page))


def holes(page: BeautifulSoup) -> list[str]:
    """The lines above which more is empty than Python's style asks for: something that was hidden stood there."""
    found = []
    for cell in code_cells(page):
        code = cell.get_text()
        lines = [line.strip() for line in code.splitlines()]
        for before, after in pairwise(ast.parse(code).body):
            most = 2 if isinstance(before, _DEFINITIONS) or isinstance(after, _DEFINITIONS) else 1
            between = "\n".join(lines[before.end_lineno - 1 : after.lineno])
            if "\n" * (most + 2) in between:
                found.append(lines[after.lineno - 1])
    return found


def lost_headings(script: str) -> list[str]:
    """The lines under headings with text behind them: those are no headings then, and all of it is one paragraph."""
    return re.findall(r"^# [-=~]{3,} +\S.*", script, re.MULTILINE)


def prompts(script: Path) -> list[str]:
    """The lines of text blocks that look like a session that was run, and never was."""
    _, blocks = split_code_and_text_blocks(str(script))
    text = [line for block in blocks if block.type == "text" for line in block.content.splitlines()]
    return [line for line in text if ">>>" in line]


def not_shown(script: Path) -> list[str]:
    """Names that stand alone on a line to show their value, and do not: only that of a cell's last statement is shown."""
    _, blocks = split_code_and_text_blocks(str(script))
    cells = [ast.parse(block.content).body for block in blocks if block.type == "code"]
    alone = [statement for cell in cells for statement in cell[:-1] if isinstance(statement, ast.Expr)]
    return [ast.unparse(one) for one in alone if not any(isinstance(part, ast.Call) for part in ast.walk(one))]


def test_code_fits_its_column(site: Path, script: str) -> None:
    page = read(site / "gallery" / Path(script).with_suffix(".html"))
    assert code_cells(page)
    found = too_long(page)
    assert not found


def test_cells_are_short(site: Path, script: str) -> None:
    assert not long_cells(read(site / "gallery" / Path(script).with_suffix(".html")))


def test_no_cell_is_empty(site: Path, script: str) -> None:
    assert not empty_cells(read(site / "gallery" / Path(script).with_suffix(".html")))


def test_code_has_no_holes(site: Path, script: str) -> None:
    found = holes(read(site / "gallery" / Path(script).with_suffix(".html")))
    assert not found, "take out the empty line between `# sphinx_gallery_end_ignore` and these"


def test_each_heading_ends_with_its_line(root: Path, script: str) -> None:
    assert not lost_headings((root / "examples" / script).read_text(encoding="utf-8"))


def test_text_shows_no_prompt(root: Path, script: str) -> None:
    assert not prompts(root / "examples" / script)


def test_what_stands_alone_to_be_shown_is_shown(root: Path, script: str) -> None:
    found = not_shown(root / "examples" / script)
    assert not found, f"move them below what is hidden, to the end of their cells: {found}"


@pytest.mark.parametrize(("width", "found"), [(COLUMN, 0), (COLUMN + 1, 1)])
def test_a_long_line_is_found(tmp_path: Path, width: int, found: int) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        f'<div class="highlight"><pre><span>short</span>\n<span>x</span>{"y" * (width - 1)}\n</pre></div>'
        f'<div class="sphx-glr-script-out"><div class="highlight"><pre>{"z" * 200}</pre></div></div>'
    )
    assert len(too_long(read(page))) == found


@pytest.mark.parametrize(("text", "found"), [("# Title\n# -----\n# Text", 0), ("# Title\n# ----- Text", 1)])
def test_a_lost_heading_is_found(text: str, found: int) -> None:
    assert len(lost_headings(text)) == found


@pytest.mark.parametrize(("code", "found"), [("\n", 1), ("x = 1\n", 0)])
def test_an_empty_cell_is_found(tmp_path: Path, code: str, found: int) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<div class="highlight"><pre><span></span>{code}</pre></div>')
    assert empty_cells(read(page)) == found


@pytest.mark.parametrize(("lines", "found"), [(LINES, []), (LINES + 1, ["line 0"])])
def test_a_long_cell_is_found(tmp_path: Path, lines: int, found: list[str]) -> None:
    code, output = ("".join(f"line {number}\n" for number in range(count)) for count in (lines, 4 * LINES))
    page = tmp_path / "page.html"
    page.write_text(
        f'<div class="highlight"><pre><span></span>{code}\n</pre></div>'
        f'<div class="sphx-glr-script-out"><div class="highlight"><pre>{output}</pre></div></div>'
    )
    assert long_cells(read(page)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x = 1\n\n\ny = 2", ["y = 2"]),
        ("x = 1\n\n# why\n\n\ny = 2", ["y = 2"]),
        ("x = 1\n\n\ndef f():\n    pass\n\n\ny = f()", []),
        ("def f():\n    pass\n\n\n\ny = f()", ["y = f()"]),
        ("x = 1\n\n# why\ny = 2", []),
    ],
)
def test_a_hole_is_found(tmp_path: Path, code: str, found: list[str]) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<div class="highlight"><pre><span></span>{code}\n</pre></div>')
    assert holes(read(page)) == found


def test_a_prompt_is_found(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        '"""\nTitle\n=====\n\n>>> 1 + 1\n3\n"""\n\nx = ">>> in code"\n\n# %%\n# Text::\n#\n#    >>> 2\n\ny = 1\n'
    )
    assert prompts(script) == [">>> 1 + 1", "   >>> 2"]


@pytest.mark.parametrize(
    ("code", "found"),
    [("x\n", []), ("x\n# hidden\nassert x\n", ["x"]), ("x.T\nx\n", ["x.T"]), ("print(x)\nf(x).T\nassert x\n", [])],
)
def test_what_is_not_shown_is_found(tmp_path: Path, code: str, found: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(f'"""\nTitle\n=====\n"""\n\n{code}')
    assert not_shown(script) == found
