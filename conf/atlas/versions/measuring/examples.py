"""Run examples under the PyTorch that is here, cell by cell: what each prints, and what fails.

A script goes on after a failed assert, so all that differs from the build's own PyTorch is seen in one run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from atlas.gallery import every_assert, sandbox, scrapers
from atlas.gallery.process import count_cores
from atlas.gallery.requests import has_request

LONGEST = 4000  # characters of what a cell prints; more is cut
TIME_LIMIT = 600.0  # seconds on the clock for one script
_DOCSTRING = re.compile(r"""\A\s*r?(\"{3}|'{3}).*?\1""", re.DOTALL)
_CELL = re.compile(r"^# ?%%", re.MULTILINE)


def scripts(examples: Path) -> dict[str, Path]:
    """The scripts below a folder by their names, such as ``graphs/first_graph``."""
    return {f"{path.parent.name}/{path.stem}": path for path in sorted(examples.glob("*/*.py"))}


def code_hash(script: Path) -> str:
    """What the outputs of a script depend on: its code. Its docstring, lines that are comments, and blank lines do not count.

    It is a hash of text and not of a syntax tree, which each version of Python writes in another way.
    """
    return _code_hash(script, script.stat().st_mtime_ns)


@cache  # each version's data ask for the hash of each script
def _code_hash(script: Path, saved: int) -> str:
    text = _DOCSTRING.sub("", script.read_text(encoding="utf-8"), count=1)
    code = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def measure(found: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Run each script in a process of its own, in an empty folder.

    :returns: for each name ``code``, ``outputs`` (of each cell that prints: ``cell``, ``text``, ``varies``) and ``faults``
        (``cell``, ``code``, ``said``).
    """
    answers = sandbox.run(_run, list(found.values()), at_once=count_cores(), time_limit=TIME_LIMIT, apart=True)
    made = {}
    for (name, script), (answer, why) in zip(found.items(), answers, strict=True):
        ended = {"outputs": [], "faults": [{"cell": 0, "code": "", "said": why}]}
        made[name] = {"code": code_hash(script), **(answer or ended)}
    return made


def _run(script: Path) -> dict[str, Any]:
    """Run a script as ``__main__`` in this process, which is to end after it."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryFile() as printed:
        os.chdir(empty)
        os.dup2(printed.fileno(), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stdout = open(os.dup(1), "w", encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115  until this process ends
        sys.argv = [str(script)]
        scrapers.start_fresh({}, None)
        found = _cells(script, printed.fileno())
        os.chdir("/")
        return found


def _cells(script: Path, printed: int) -> dict[str, Any]:
    """Run a script here.

    :param printed: the file that standard output goes to.
    """
    text = script.read_text(encoding="utf-8")
    cells, lines = _CELL.split(text), text.splitlines()
    starts = [text[: mark.start()].count("\n") + 1 for mark in _CELL.finditer(text)]
    outputs: dict[int, str] = {}
    faults, place = [], 0
    last = _last_of_cells(text, starts)
    for statement, failed, value in every_assert.statements(script, go_on=False):
        cell = _cell(statement, starts)
        sys.stdout.flush()
        end = os.lseek(printed, 0, os.SEEK_END)
        said = os.pread(printed, end - place, place).decode(errors="replace")
        place = end
        if value is not None and statement.lineno in last:
            said += f"{value!r}\n"
        if said:
            outputs[cell] = outputs.get(cell, "") + said
        for fault in failed:
            line = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
            faults.append({"cell": cell, "code": line, "said": without_traces(fault.message)[:LONGEST]})
    told = [
        {"cell": cell, "text": without_traces(said)[:LONGEST], "varies": has_request("varies", cells[cell])}
        for cell, said in outputs.items()
    ]
    return {"outputs": told, "faults": faults}


def _cell(statement: ast.stmt, starts: list[int]) -> int:
    """Which cell a statement is in: how many have begun before it."""
    return sum(start <= statement.lineno for start in starts)


def _last_of_cells(text: str, starts: list[int]) -> set[int]:
    """The lines of the expressions whose value a page shows: each ends a cell."""
    last = {_cell(statement, starts): statement for statement in ast.parse(text).body}
    last.pop(0, None)  # the text of the page
    return {statement.lineno for statement in last.values() if isinstance(statement, ast.Expr)}


def without_traces(text: str) -> str:
    """The text without what differs from machine to machine: addresses, and folders.

    >>> without_traces("<MulBackward0 object at 0x7f12ab34cd56>")
    '<MulBackward0 object at 0x...>'
    >>> without_traces("No such file: '/tmp/tmp4/trace.json', see https://a.example/b/c")
    "No such file: '.../trace.json', see https://a.example/b/c"
    """
    return re.sub(r"(?<![\w/:.])/(?:[\w.+-]+/)+", ".../", re.sub(r"0x[0-9a-f]{6,}", "0x...", text))
