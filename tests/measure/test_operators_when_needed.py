"""The operators are measured if PyTorch or the program has changed, and for no other reason."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import operators
from atlas import operators as probing
from atlas.toolbox import Refusal


def keep(docs: Path, **changed: Any) -> None:
    (docs / probing.DATA).parent.mkdir(parents=True, exist_ok=True)
    of = probing.identify_result() | changed
    (docs / probing.DATA).write_text(json.dumps({"of": of, "rows": [], "not_probed": {}}))


def test_a_result_of_this_pytorch_and_program_is_used(tmp_path: Path) -> None:
    assert probing.read_operators(tmp_path) is None
    keep(tmp_path)
    assert probing.read_operators(tmp_path)
    for changed in ({"torch": "another"}, {"code": "another"}):
        keep(tmp_path, **changed)
        assert probing.read_operators(tmp_path) is None
    for text in ("", "{", "[]", "null"):
        (tmp_path / probing.DATA).write_text(text)
        assert probing.read_operators(tmp_path) is None


def test_what_the_program_says_when_it_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "fails.py"
    program.write_text("import sys\nsys.exit('no operators here')\n")
    monkeypatch.setattr(probing, "PROGRAM", program)
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "operators.md").touch()
    with pytest.raises(Refusal, match=r"(?s)could not be probed; .* says:\nno operators here"):
        probing.probe_when_needed(SimpleNamespace(srcdir=tmp_path))


def test_the_program_writes_rows_and_why_others_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "exp", "saves": ["output"], "notes": {"second": "if sliced"}}]
    monkeypatch.setattr(operators, "probe_all", lambda jobs: (rows, {"other": "killed by SIGSEGV"}))
    operators.main([str(tmp_path / "data" / "out.json"), "--of", '{"torch": "1"}'])
    written = json.loads((tmp_path / "data" / "out.json").read_text())
    assert written == {"of": {"torch": "1"}, "rows": rows, "not_probed": {"other": "killed by SIGSEGV"}}
