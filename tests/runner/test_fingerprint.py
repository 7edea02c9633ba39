"""An example is out of date when anything changes that its outputs depend on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas.runner.outputs import fingerprint


def test_it_names_what_outputs_depend_on(tmp_path: Path, settings: dict[str, Any]) -> None:
    script = tmp_path / "page.py"
    script.write_text("x")
    found = fingerprint.of(script, fingerprint.shared(settings))
    assert {"the script", "Python", "torch", "matplotlib", "sphinx-gallery", "pygraphviz", "the GPU's driver"} <= set(
        found
    )


def test_bytes_of_the_script_count(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("x")
    before = fingerprint.of(script, {"torch": "1"})
    script.write_text("y")
    assert fingerprint.changes(before, fingerprint.of(script, {"torch": "1"})) == ["the script"]


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


@pytest.mark.parametrize(
    "change", [{"show_signature": True}, {"remove_config_comments": False}, {"capture_repr": ("__repr__",)}], ids=str
)
def test_a_setting_that_shapes_pages_counts(settings: dict[str, Any], change: dict[str, Any]) -> None:
    found = fingerprint.changes(fingerprint.shared(settings), fingerprint.shared({**settings, **change}))
    assert found == ["sphinx_gallery_conf in conf/conf.py"]


@pytest.mark.parametrize(
    "change", [{"subsection_order": ["*"]}, {"within_subsection_order": "other"}, {"stale_examples": ["x"]}], ids=str
)
def test_the_order_of_pages_and_the_state_of_a_build_do_not(settings: dict[str, Any], change: dict[str, Any]) -> None:
    assert fingerprint.shared(settings) == fingerprint.shared({**settings, **change})


def test_a_gpu_that_appears_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
    monkeypatch.setattr(fingerprint, "_DRIVER", tmp_path / "version")
    before = fingerprint.shared(settings)
    (tmp_path / "version").write_text("NVRM version: 570")
    assert fingerprint.changes(before, fingerprint.shared(settings)) == ["the GPU's driver"]


def test_a_version_that_changes_counts(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
    before = fingerprint.shared(settings)
    monkeypatch.setattr(fingerprint, "version", lambda package: "9.9" if package == "torch" else before[package])
    assert fingerprint.changes(before, fingerprint.shared(settings)) == [f"torch {before['torch']} -> 9.9"]
