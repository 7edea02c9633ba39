"""The notebook and the script of a page, as text."""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from atlas.gallery.notebooks import make_first_cell

from .blocks import Code, Text

_PYTHON = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
_SHOW = "from sys import displayhook as show  # prints a value as the prompt of Python does"


def notebook(parts: Sequence[Text | Code]) -> str:
    """The notebook: text, and the code that the page shows. Its first cell installs what the code imports."""
    cells = [_cell("code", make_first_cell(imported_by(parts)))]
    for part in parts:
        if isinstance(part, Text):
            cells.append(_cell("markdown", part.markdown))
        elif part.shown:
            cells.append(_cell("code", part.source, tags=["raises-exception"] if part.raises else []))
    return json.dumps({"cells": cells, "metadata": _PYTHON, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


def _cell(kind: str, source: str, *, tags: Sequence[str] = ()) -> dict[str, Any]:
    cell = {"cell_type": kind, "metadata": {"tags": tags} if tags else {}, "source": source.splitlines(keepends=True)}
    return cell | {"execution_count": None, "outputs": []} if kind == "code" else cell


def script(parts: Sequence[Text | Code]) -> str:
    """The script: all code of the page, its checks as well, and its text in comments. It prints what the page shows."""
    made = list(_parts_of_script(parts))
    needs_show = any(line.startswith(("show(", "    show(")) for part in made for line in part.splitlines())
    return "\n\n".join(([_SHOW] if needs_show else []) + made) + "\n"


def _parts_of_script(parts: Iterable[Text | Code]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield "# %% [markdown]\n" + "\n".join(f"# {line}".rstrip() for line in part.markdown.splitlines())
        elif part.raises:
            yield (
                f"# %%\ntry:\n{textwrap.indent(_shown(part.source), '    ')}\n"
                'except Exception as error:\n    print(f"{type(error).__name__}: {error}")'
            )
        else:
            yield f"# %%\n{_shown(part.source) if part.shown else part.source}"


def _shown(code: str) -> str:
    """Code that prints the value of its last line, if that has one.

    >>> print(_shown("x = 1\\nx + 1"))
    x = 1
    show(x + 1)
    """
    last = ast.parse(code).body[-1:]
    if not last or not isinstance(last[0], ast.Expr) or ast.unparse(last[0]).startswith("print("):
        return code
    lines = code.splitlines()
    before, rest = lines[: last[0].lineno - 1], lines[last[0].lineno - 1 : last[0].end_lineno]
    comment = rest[-1].encode()[last[0].end_col_offset :].decode()
    rest[-1] = rest[-1].encode()[: last[0].end_col_offset].decode()
    value = "\n".join(rest)
    if isinstance(last[0].value, ast.Tuple):  # perhaps without parentheses of its own
        value = f"({value})"
    return "\n".join([*before, f"show({value}){comment}", *lines[last[0].end_lineno :]])


def imported_by(parts: Iterable[Text | Code]) -> str:
    """The code that a reader should be able to run: what raises may raise because a package is missing."""
    return "\n".join(part.source for part in parts if isinstance(part, Code) and not part.raises)
