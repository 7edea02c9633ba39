"""Which asserts of an example ran, and which line runs: the interpreter itself says so while it runs the example.

Prose is only as true as its asserts, and an assert that never runs checks nothing. So sphinx-gallery is given a compiler that
puts a call before each assert, which notes it, and before each statement at the top level, which notes the line. That holds in
every thread, also in those that C++ starts: PyTorch calls hooks of a GPU there, and no trace function of Python sees them. The
source, line numbers and tracebacks stay as they are. The page's last cell reports the number of asserts, or names the first
that did not run.
"""

from __future__ import annotations

import ast
import builtins
import codeop
import mmap
import sys
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import sphinx_gallery_patches
from .scripts import PageFault

#: The functions that the compiled code calls. They are among the builtins, so that a page that shows its globals lacks them.
_RAN, _FAILED, _LINE = "__atlas_assert_ran__", "__atlas_assert_failed__", "__atlas_line_runs__"

_ran: set[int] = set()
#: The asserts that failed and that the page caught: each shows a mistake. Any other would have ended the script.
_failed: set[int] = set()
_end: int | None = None

#: Autograd numbers nodes in turn. From each of these numbers on, the line beside it records them; None: no line of the script.
_numbers: list[int] = []
_lines: list[int | None] = []


def start_watching(line: mmap.mmap, end: int | None) -> None:
    """Note what runs of the example that is compiled from here on.

    :param line: memory for the number of the running line at the top level: the build reads it if this process dies.
    :param end: the line from which on nothing runs: asserts behind it are not counted, and not missed.
    """
    global _end
    _end = end
    for noted in (_ran, _failed, _numbers, _lines):
        noted.clear()

    def note_line(number: int) -> None:
        line[:8] = number.to_bytes(8, "little")
        note_recording_line(number)

    builtins.__dict__.update({_RAN: _ran.add, _FAILED: _failed.add, _LINE: note_line})


class WatchedCompile(codeop.Compile):
    """The compiler of sphinx-gallery, which takes syntax trees."""

    def __call__(self, source: Any, filename: str, symbol: str, *arguments: Any, **options: Any) -> Any:
        tree = _WatchAsserts().visit(source)
        tree.body = _watch_lines(tree.body)
        return super().__call__(ast.fix_missing_locations(tree), filename, symbol, *arguments, **options)


class _WatchAsserts(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        noted_and_raised: list[ast.stmt] = [_call(_FAILED, node), ast.copy_location(ast.Raise(), node)]
        handler = ast.ExceptHandler(ast.Name("AssertionError", ast.Load()), None, noted_and_raised)
        caught = ast.Try([node], [ast.copy_location(handler, node)], [], [])
        return [_call(_RAN, node), ast.copy_location(caught, node)]


def _watch_lines(body: list[ast.stmt]) -> list[ast.stmt]:
    watched: list[ast.stmt] = []
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in (node, *getattr(node, "handlers", []), *getattr(node, "cases", [])):
                for name in ("body", "orelse", "finalbody"):
                    if getattr(part, name, None):
                        setattr(part, name, _watch_lines(getattr(part, name)))
        if getattr(node, "module", "") != "__future__":  # nothing may stand before such an import
            # sphinx-gallery assigns a cell's last expression to a name of its own, on line 1, which is the docstring's
            watched.append(_call(_LINE, node.value if node.lineno == 1 else node))
        watched.append(node)
    return watched


def _call(function: str, node: ast.AST) -> ast.stmt:
    call = ast.Call(ast.Name(function, ast.Load()), [ast.Constant(node.lineno)], [])
    statement = ast.copy_location(ast.Expr(call), node)
    statement.end_lineno = call.end_lineno = node.lineno
    return statement


def report_asserts(block: Any, block_vars: Mapping[str, Any]) -> str:
    """Return reST for the page's count of asserts if the block is the last cell of its page that runs.

    :raises PageFault: if an assert of the page has not run by then; it names file and line.
    """
    path = Path(block_vars["src_file"])
    if block.lineno != list(sphinx_gallery_patches.read_code_cells(path, _end))[-1]:
        return ""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    lines = _find_asserts(tree)
    missed = sorted({line for line in lines if _end is None or line < _end} - _ran)
    if missed:
        raise PageFault(
            f"{path}:{missed[0]}: this assert never ran, so it checks nothing; {len(missed)} like it in this file. If it "
            "stands under a condition on the version or the machine, write an else with an assert of what holds there"
        )
    # those in except blocks speak of an error that the page raises on purpose
    about_errors = _find_asserts(*(node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)))
    return f"\n.. claims:: {len(_ran)} {len(_ran & about_errors)} {len(_failed)}\n\n" if _ran else ""


def _find_asserts(*trees: ast.AST) -> set[int]:
    return {node.lineno for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assert)}


def note_recording_line(line: int | None) -> None:
    """Say which line of the script records the nodes that follow; None when what follows is not the script.

    Only lines at the top level are told apart: what a function of the script records belongs to the line that called it.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):  # the script has not imported it yet, or is about to
        return
    _numbers.append(torch.autograd._get_sequence_nr())
    _lines.append(line)


def find_recording_line(number: int) -> int | None:
    """The line that recorded the node with this number; None for a node that no line of the script did.

    >>> import torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> note_recording_line(7)
    >>> y = x * x
    >>> note_recording_line(8)
    >>> find_recording_line(y.grad_fn._sequence_nr())
    7
    """
    place = bisect_right(_numbers, number) - 1
    return _lines[place] if place >= 0 else None
