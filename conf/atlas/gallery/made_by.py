"""Which line of a script made a variable, for figures that show it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LONGEST = 72  # characters of a line in a figure


def lines_of_names(path: str, end: int) -> dict[str, str]:
    """For each variable that the script has assigned up to line ``end``, outside of functions, the line that did.

    A name that is assigned in several places, one of them in a loop, is left out: which was the last cannot be read off.
    """
    assigned: dict[str, list[tuple[ast.stmt, bool]]] = {}
    for name, statement, in_loop in _assignments(path):
        if statement.lineno <= end:
            assigned.setdefault(name, []).append((statement, in_loop))
    return {
        name: _text(path, found[-1][0])
        for name, found in assigned.items()
        if len(found) == 1 or not any(in_loop for _, in_loop in found)
    }


@cache
def _assignments(path: str) -> tuple[tuple[str, ast.stmt, bool], ...]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return tuple(_walk(tree.body, in_loop=False))


def _walk(body: list[ast.stmt], *, in_loop: bool) -> Iterator[tuple[str, ast.stmt, bool]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                names = (node for node in ast.walk(target) if isinstance(node, ast.Name))
                yield from ((name.id, statement, in_loop) for name in names if isinstance(name.ctx, ast.Store))
        loops = in_loop or isinstance(statement, (ast.For, ast.While))
        for part in ("body", "orelse", "finalbody"):
            yield from _walk(getattr(statement, part, []), in_loop=loops)
        for handler in getattr(statement, "handlers", []):
            yield from _walk(handler.body, in_loop=loops)


def _text(path: str, statement: ast.stmt) -> str:
    line, *more = Path(path).read_text(encoding="utf-8").splitlines()[statement.lineno - 1 : statement.end_lineno]
    line = line.strip()
    return f"{line[:LONGEST]} …" if more or len(line) > LONGEST else line
