"""Count the asserts of an example that ran, and refuse an example with an assert that did not run.

Prose is only as true as its asserts, and an assert that never runs checks nothing. While an example runs, ``line_watcher``
reports its lines, and the asserts among them are noted, those apart that fail where the page expects it. The page's last cell
reports their number, or names the first assert that did not run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

from atlas.runner import sphinx_gallery_api

from . import before_backward, line_watcher, node_lines
from .line_watcher import Note

_ran: dict[str, set[int]] = {}
_failed: dict[str, set[int]] = {}
"""The asserts that failed and that the page caught: each shows a mistake. Any other would have ended the script."""
_line: Any = None
_end: int | None = None
"""The line of the example from which on nothing runs."""


class ClaimError(AssertionError):
    """An assert of the page was never executed."""


def report_line_to(memory: Any) -> None:
    """Keep the number of the running top-level line of the example in ``memory``: the build reads it if this process dies."""
    global _line
    _line = memory


def end_at(line: int | None) -> None:
    """Expect that the example runs only up to ``line``: asserts behind it are not counted, and not missed."""
    global _end
    _end = line


def watch(gallery_conf: Mapping[str, Any], name: str | None) -> None:
    """Watch the example ``name`` from here on; one of sphinx-gallery's ``reset_modules``."""
    if name:
        node_lines.forget()
        entered = {before_backward.FUNCTION: partial(before_backward.entered, name)}
        line_watcher.start(lambda code: _noter(code, name), _note_failed, entered)


def scrape(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for the page's count of checks if the block is the last cell of its page that runs.

    :raises ClaimError: if an assert of the page has not run by then; it names file and line.
    """
    path = block_vars["src_file"]
    if block.lineno != _last_cell(path, _end):
        return ""
    ran = _ran.get(path, set())
    missed = sorted({line for line in _asserts(path).values() if _end is None or line < _end} - ran)
    if missed:
        raise ClaimError(
            f"{path}:{missed[0]}: this assert never ran, so it checks nothing; {len(missed)} like it in this file"
        )
    numbers = (len(ran), len(ran & _about_errors(path)), len(ran & _failed.get(path, set())))
    return f"\n.. claims:: {' '.join(map(str, numbers))}\n\n" if ran else ""


@cache
def _last_cell(path: str, end: int | None) -> int:
    return sphinx_gallery_api.cells(Path(path), end)[-1]


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))


@cache
def _asserts(path: str) -> dict[int, int]:
    """For each line of each assert of the file, the assert's first line.

    Python reports the line of the expression that it evaluates, which need not be the one that says ``assert``.
    """
    asserts = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.Assert)]
    return {line: node.lineno for node in asserts for line in range(node.lineno, node.end_lineno + 1)}


def _about_errors(path: str) -> set[int]:
    """The lines of the asserts in ``except`` blocks: they speak of an error that the page raises on purpose."""
    handlers = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.ExceptHandler)]
    return {node.lineno for handler in handlers for node in ast.walk(handler) if isinstance(node, ast.Assert)}


def _note_failed(code: CodeType, line: int) -> None:
    path = code.co_filename
    if line in _asserts(path):
        _failed.setdefault(path, set()).add(_asserts(path)[line])


def _noter(code: CodeType, name: str) -> Note | None:
    """What notes the lines of ``code`` as they run: None for a function without asserts, and for other files than ``name``."""
    path = code.co_filename
    if not path.endswith(name) or Path(path).name != name:
        return None
    asserts, ran = _asserts(path), _ran.setdefault(path, set())
    top = code.co_name == "<module>"
    if not top and not any(line in asserts for _, _, line in code.co_lines()):
        return None

    def note(line: int) -> bool:
        if line in asserts:
            ran.add(asserts[line])
        # Line 1 is the docstring's. A cell's last expression seems to end there: sphinx-gallery assigns it to a name of its own
        if top and line > 1:
            node_lines.note(line)
            if _line is not None:
                _line[:8] = line.to_bytes(8, "little")
        return top

    return note
