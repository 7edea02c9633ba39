"""What a reader sees of a script's code, and that it runs: hidden blocks hold asserts, and what only they use.

A hidden block lies between ``# sphinx_gallery_start_ignore`` and ``# sphinx_gallery_end_ignore``. Where the code raises on
purpose, a hidden block ends with ``try:``, and the next one begins with ``except``: a reader sees what stands between them
without its indentation.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from typing import NamedTuple

from atlas.toolbox import list_imports

#: The first line of a cell that needs a GPU, on a page whose other cells need none.
NEEDS_GPU = "# This needs a GPU."
MARKS_OF_HIDDEN = _STARTS, _ENDS = "# sphinx_gallery_start_ignore", "# sphinx_gallery_end_ignore"
_TEXT = re.compile(r"# ?%%|#{20,}")  # where a text block begins; the code cells below it follow its comment lines
_FOLD = re.compile(r"#\s+\.\. how-measured::")
#: What Python itself puts into a module.
_OF_PYTHON = {*dir(builtins), "__name__", "__file__", "__doc__"}


class Shown(NamedTuple):
    """Code as a reader sees it."""

    lines: list[str | None]
    """None for each that is hidden."""
    raises: bool
    """Whether it raises on purpose: hidden code catches that."""

    @property
    def code(self) -> str:
        return "\n".join(line for line in self.lines if line is not None)

    @property
    def code_in_place(self) -> str:
        """With an empty line for each that is hidden, so that all have their numbers."""
        return "\n".join(line or "" for line in self.lines)


def show_code(code: str) -> Shown:
    r"""What a page shows of ``code``, which is a script or a cell of one.

    :raises SyntaxError: if it is no Python.

    >>> harness = "try:\n    # sphinx_gallery_end_ignore\n    f(1)\n# sphinx_gallery_start_ignore\nexcept E: pass\n"
    >>> shown = show_code(f"a = 1\n# sphinx_gallery_start_ignore\n{harness}# sphinx_gallery_end_ignore")
    >>> shown.code, shown.raises
    ('a = 1\nf(1)', True)
    """
    lines, hidden, is_hidden = code.split("\n"), set(), False
    for number, line in enumerate(lines, 1):
        is_hidden = (is_hidden or line.strip() == _STARTS) and line.strip() != _ENDS
        if is_hidden or line.strip() == _ENDS:
            hidden.add(number)
    raises, deeper = False, [0] * (len(lines) + 1)
    for node in ast.walk(ast.parse(code)):
        bodies = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
        if not isinstance(node, ast.stmt) or node.lineno not in hidden or not isinstance(bodies[0], list):
            continue
        start = node.lineno  # above the first statement of a body, comments and decorators are in it too
        for body in filter(None, bodies):
            inside = range(start + 1, body[-1].end_lineno + 1)
            for number in inside:
                deeper[number] += body[0].col_offset - node.col_offset
            raises |= isinstance(node, ast.Try) and not hidden.issuperset(inside)
            start = body[-1].end_lineno
    shown = [
        None if number in hidden else line[min(deeper[number], len(line) - len(line.lstrip())) :]
        for number, line in enumerate(lines, 1)
    ]
    return Shown(shown, raises)


def find_hidden_needs(text: str) -> tuple[int, str] | None:
    """The first line of a script that needs hidden code to run, or that a reader has to open a fold to import, and why.

    :raises SyntaxError: if what a reader sees of the script is no Python.
    """
    seen = show_code(text).code_in_place
    unfolded = "\n".join("" if is_folded else line for line, is_folded in _mark_folded(seen))
    imported = {name for _, _, name in list_imports(ast.parse(text))}
    folded = _find_unbound(unfolded) & imported
    for code, names, only in (
        (seen, _find_unbound(seen), "only hidden code defines"),
        (unfolded, folded, "only folded code imports"),
    ):
        used = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and node.id in names)
        if first := min(used, key=lambda node: node.lineno, default=None):
            return first.lineno, f"this visible code uses {first.id!r}, which {only}; move it into sight"
    return None


def _mark_folded(code: str) -> Iterator[tuple[str, bool]]:
    is_folded = is_text = False
    for line in code.split("\n"):
        if _TEXT.match(line):
            is_text = True
        elif _FOLD.match(line):
            is_folded, is_text = True, False
        elif is_text and not line.startswith("#"):
            is_text = False
        elif is_text and line.strip("# "):  # an empty text block ends no fold
            is_folded = False
        yield line, is_folded


def _find_unbound(code: str) -> set[str]:
    """The global names that code uses and binds nowhere."""
    module = symtable.symtable(code, "<visible code>", "exec")
    bound = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    tables, used = [module], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table is module or symbol.is_global())
        }
    return used - bound - _OF_PYTHON
