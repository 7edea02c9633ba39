"""A result is used only if it is whole, and of this PyTorch and this code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas.operators import report

ROWS = [{"name": "exp", "saves": ["output"]}]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "operators.json"
    report.save(path, ROWS, {"other": "why"})
    return path


def test_what_is_saved_is_loaded(kept: Path) -> None:
    found = report.load(kept)
    assert found and (found["rows"], found["not_probed"]) == (ROWS, {"other": "why"})
    assert kept.with_suffix(".csv").read_text().splitlines() == ["name,saves", "exp,output"]
    assert sorted(path.name for path in kept.parent.iterdir()) == ["operators.csv", "operators.json"]


@pytest.mark.parametrize("key", ["torch", "code"])
def test_a_result_of_something_else_is_out_of_date(kept: Path, key: str) -> None:
    found = json.loads(kept.read_text())
    found["of"][key] = "another"
    kept.write_text(json.dumps(found))
    assert report.load(kept) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_broken_result_is_out_of_date(kept: Path, text: str) -> None:
    kept.write_text(text)
    assert report.load(kept) is None


def test_a_missing_result_is_out_of_date(tmp_path: Path) -> None:
    assert report.load(tmp_path / "operators.json") is None
