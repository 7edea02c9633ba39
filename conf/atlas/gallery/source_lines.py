"""What a script's text says of its lines, for a figure of a graph: which statement a line belongs to, which made a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

LONGEST = 72  # characters of a line in a figure


class Statement(NamedTuple):
    """Its first line, as a figure shows it, and the numbers of its lines in the script."""

    text: str
    first: int
    last: int


def find_statement(path: str, line: int) -> Statement:
    """The statement that a line of the script belongs to. Of a loop that is its head, or a statement in it."""
    text, tree = _parse(path)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno]
    return _make_statement(text, max(found, key=lambda node: node.lineno))


def find_assignments(path: str, end: int) -> dict[str, Statement]:
    """For each variable that the script has assigned up to line ``end``, outside of functions, the statement that did.

    A name that is assigned in several places, one of them in a loop, is left out: which was the last cannot be read off.
    """
    text, tree = _parse(path)
    assigned: dict[str, list[tuple[ast.stmt, bool]]] = {}
    for name, statement, in_loop in _list_assignments(tree.body, in_loop=False):
        if statement.lineno <= end:
            assigned.setdefault(name, []).append((statement, in_loop))
    return {
        name: _make_statement(text, found[-1][0])
        for name, found in assigned.items()
        if len(found) == 1 or not any(in_loop for _, in_loop in found)
    }


def find_loop_variables(path: str) -> set[str]:
    """The names that only a ``for`` gives values to, anywhere in the script."""
    nodes = list(ast.walk(_parse(path)[1]))
    loops = {name for node in nodes if isinstance(node, ast.For) for name in _stored_names(node.target)}
    return loops - {name for node in nodes for name in _assigned_names(node)}


@cache
def _parse(path: str) -> tuple[list[str], ast.Module]:
    text = Path(path).read_text(encoding="utf-8")
    return text.splitlines(), ast.parse(text, path)


def _list_assignments(body: list[ast.stmt], *, in_loop: bool) -> Iterator[tuple[str, ast.stmt, bool]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield from ((name, statement, in_loop) for name in _assigned_names(statement))
        loops = in_loop or isinstance(statement, (ast.For, ast.While))
        for part in (statement, *getattr(statement, "handlers", [])):
            for name in ("body", "orelse", "finalbody"):
                yield from _list_assignments(getattr(part, name, []), in_loop=loops)


def _assigned_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement assigns; of anything else, none."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _stored_names(target)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        yield from _stored_names(node.target)


def _stored_names(target: ast.expr) -> Iterator[str]:
    """The names in a target, those in ``x.grad`` and ``x[i]`` aside: these are read, not assigned."""
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _make_statement(text: list[str], node: ast.stmt) -> Statement:
    inner = getattr(node, "body", None)
    last = max(node.lineno, inner[0].lineno - 1) if inner else node.end_lineno
    line, *more = text[node.lineno - 1 : last]
    line = line.strip()
    return Statement(f"{line[:LONGEST]} …" if more or len(line) > LONGEST else line, node.lineno, last)
