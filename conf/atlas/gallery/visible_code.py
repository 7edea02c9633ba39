"""What a reader sees of a script's code: hidden blocks hold asserts, and what only they use.

A hidden block lies between ``# sphinx_gallery_start_ignore`` and ``# sphinx_gallery_end_ignore``. Where the code raises on
purpose, a hidden block ends with ``try:``, and the next one begins with ``except``: a reader sees what stands between them
without its indentation.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

#: The first line of a cell that needs a GPU, on a page whose other cells need none.
NEEDS_GPU = "# This needs a GPU."
MARKS_OF_HIDDEN = _STARTS, _ENDS = "# sphinx_gallery_start_ignore", "# sphinx_gallery_end_ignore"


class Shown(NamedTuple):
    """Code as a reader sees it."""

    lines: list[str | None]
    """None for each that is hidden."""
    raises: bool
    """Whether it raises on purpose: hidden code catches that."""

    @property
    def code(self) -> str:
        return "\n".join(line for line in self.lines if line is not None)


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
