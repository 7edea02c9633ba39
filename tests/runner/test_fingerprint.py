"""An example is out of date when anything changes that its outputs depend on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from atlas.runner import fingerprint


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    fingerprint.shared.cache_clear()
    yield
    fingerprint.shared.cache_clear()


def test_it_names_what_outputs_depend_on(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("x")
    found = fingerprint.of(script)
    assert {"the script", "Python", "torch", "matplotlib", "sphinx-gallery", "pygraphviz", "the GPU's driver"} <= set(
        found
    )


def test_bytes_of_the_script_count(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("x")
    before = fingerprint.of(script)
    script.write_text("y")
    assert fingerprint.changes(before, fingerprint.of(script)) == ["the script"]


def test_code_that_draws_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("gallery", "graphs", "runner", "pages"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("1")
    monkeypatch.setattr(fingerprint, "_SITE", tmp_path)
    before = fingerprint.code()
    (tmp_path / "pages" / "a.py").write_text("2")
    assert fingerprint.code() == before, "what shapes the page after the run does not make the run stale"
    (tmp_path / "graphs" / "a.py").write_text("2")
    assert fingerprint.code() != before


def test_a_gpu_that_appears_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "page.py"
    script.write_text("x")
    monkeypatch.setattr(fingerprint, "_DRIVER", tmp_path / "version")
    before = fingerprint.of(script)
    (tmp_path / "version").write_text("NVRM version: 570")
    fingerprint.shared.cache_clear()
    assert fingerprint.changes(before, fingerprint.of(script)) == ["the GPU's driver"]


def test_a_version_that_changes_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "page.py"
    script.write_text("x")
    before = fingerprint.of(script)
    monkeypatch.setattr(fingerprint, "version", lambda package: "9.9" if package == "torch" else before[package])
    fingerprint.shared.cache_clear()
    assert fingerprint.changes(before, fingerprint.of(script)) == [f"torch {before['torch']} -> 9.9"]
