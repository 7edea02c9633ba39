"""Run a script to its end whatever fails, and say all that did: ``conf/record.py --check``, and ``versions``.

A GPU may be there for half an hour only. To learn one fault of a page at a time would use it up. And another PyTorch is
gigabytes large: what fails under it is asked once.
"""

from __future__ import annotations

import ast
import linecache
import multiprocessing
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from . import process
from .child import Limits
from .faults import Fault, explain_error
from .scrapers import start_fresh

_NOTE = "atlas_note_failed_assert"


def passes(script: Path, empty: Path, limits: Limits) -> bool:
    """Run a script in a process of its own, in the folder ``empty``; print what fails to stderr, as it fails.

    What the script prints is dropped.
    """
    process.import_before_fork(1)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(script, empty))
    child.start()
    child.join(limits.wall_clock)
    if child.is_alive():
        child.kill()
        child.join()
        _say(Fault(str(script), 0, f"the script did not end within {limits.wall_clock:g} s"))
    elif child.exitcode not in (0, 1):
        _say(Fault(str(script), 0, f"the script's process ended with {child.exitcode}"))
    return child.exitcode == 0


def _run(script: Path, empty: Path) -> NoReturn:
    os.chdir(empty)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  until this process ends
    start_fresh({}, None)
    failed = False
    for fault in faults(script):
        failed = True
        _say(fault)
    os._exit(failed)  # what this process's parent does at its end must not be done here too


def _say(fault: Fault) -> None:
    print(fault.make_report(), file=sys.stderr, flush=True)


def faults(script: Path) -> Iterator[Fault]:
    """Run a script here, as ``__main__``: each assert that failed, and each statement of the module that raised.

    After either the script goes on. What fails only because a name is missing that such a statement would have made is left
    out, since it says nothing new.
    """
    for _statement, noted, _value in statements(script, go_on=True):
        yield from noted


def statements(script: Path, *, go_on: bool) -> Iterator[tuple[ast.stmt, list[Fault], Any]]:
    """Run a script as ``faults`` does: each statement of the module when it has ended, what failed in it, and its value.

    The value is None unless the statement is an expression.

    :param go_on: whether a statement goes on after an assert in it that failed, even if the script catches that, and whether
        the script goes on after it has ended itself with success. Those that need a GPU do so where there is none.
    """
    text = script.read_text(encoding="utf-8")
    linecache.cache[str(script)] = (len(text), None, text.splitlines(keepends=True), str(script))
    noted: list[Fault] = []

    def note() -> None:
        noted.append(explain_error(sys.exception(), script, 0))

    module = types.ModuleType("__main__")
    module.__dict__.update({"__file__": str(script), _NOTE: note})
    sys.modules["__main__"] = module
    lost: set[str] = set()
    tree = ast.parse(text, str(script))
    for statement in (_GoOn().visit(tree) if go_on else tree).body:
        value = None
        try:
            value = _do(ast.fix_missing_locations(statement), str(script), module.__dict__)
        except (Exception, SystemExit) as error:
            if not go_on and isinstance(error, SystemExit) and not error.code:
                return
            if not (isinstance(error, NameError) and error.name in lost):
                noted.append(explain_error(error, script, statement.lineno))
            lost |= _made(statement)
        yield statement, noted.copy(), value
        noted.clear()


def _do(statement: ast.stmt, file: str, names: dict[str, Any]) -> Any:
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), file, "eval", dont_inherit=True), names)
    exec(compile(ast.Module([statement], []), file, "exec", dont_inherit=True), names)
    return None


def _made(statement: ast.stmt) -> set[str]:
    """The names that a statement would have made."""
    made = set()
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
            case ast.alias(name=name, asname=other):
                made.add(other or name.partition(".")[0])
    return made


class _GoOn(ast.NodeTransformer):
    """Has each assert note its failure, and go on."""

    def visit_Assert(self, node: ast.Assert) -> ast.Try:
        note = ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), [], []))
        handler = ast.ExceptHandler(ast.Name("AssertionError", ast.Load()), None, [note])
        return ast.copy_location(ast.Try([node], [handler], [], []), node)
