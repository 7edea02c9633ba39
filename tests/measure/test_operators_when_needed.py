"""The operators are measured if PyTorch or the program has changed, and for no other reason."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import operators
from atlas import operators as probing
from atlas.toolbox import Refusal


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let ``code`` be what runs instead of the program."""
    program = folder / "python"
    program.write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def keep(docs: Path, **changed: Any) -> None:
    (docs / probing.DATA).parent.mkdir(parents=True)
    of = probing.identify_result() | changed
    (docs / probing.DATA).write_text(json.dumps({"of": of, "rows": [], "not_probed": {}}))


def probe(docs: Path) -> None:
    """What a build does that has the operators' page."""
    (docs / "reference").mkdir(exist_ok=True)
    (docs / "reference" / "operators.md").touch()
    probing.probe_when_needed(SimpleNamespace(srcdir=docs))


def test_a_result_of_this_pytorch_and_program_is_used(tmp_path: Path) -> None:
    assert probing.read_operators(tmp_path) is None
    keep(tmp_path)
    assert probing.read_operators(tmp_path)


@pytest.mark.parametrize("changed", ["torch", "code"])
def test_a_result_of_another_is_not(tmp_path: Path, changed: str) -> None:
    keep(tmp_path, **{changed: "another"})
    assert probing.read_operators(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_broken_result_is_not(tmp_path: Path, text: str) -> None:
    keep(tmp_path)
    (tmp_path / probing.DATA).write_text(text)
    assert probing.read_operators(tmp_path) is None


def test_what_the_program_says_when_it_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "sys.exit('no operators here')")
    with pytest.raises(Refusal, match=r"(?s)could not be probed; .* says:\nno operators here"):
        probe(tmp_path)


def test_packages_are_found_however_they_came_onto_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "sys.exit(os.environ['PYTHONPATH'])")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    with pytest.raises(Refusal) as told:
        probe(tmp_path)
    assert str(tmp_path / "packages") in str(told.value).splitlines()[-1].split(os.pathsep)


def test_the_program_writes_rows_and_why_others_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "exp", "saves": ["output"], "notes": {"second": "if sliced"}}]
    monkeypatch.setattr(operators, "probe_all", lambda jobs: (rows, {"other": "killed by SIGSEGV"}))
    operators.main([str(tmp_path / "data" / "out.json"), "--of", '{"torch": "1"}'])
    written = json.loads((tmp_path / "data" / "out.json").read_text())
    assert written == {"of": {"torch": "1"}, "rows": rows, "not_probed": {"other": "killed by SIGSEGV"}}
    (row,) = csv.DictReader((tmp_path / "data" / "out.csv").open())
    assert row == {"name": "exp", "saves": "output", "notes": "second: if sliced"}
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["out.csv", "out.json"]
