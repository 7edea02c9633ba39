"""``conf/measure/record.py`` records what it is asked for, or says why not. Runs on the CPU stand in here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas.gallery import process, recordings
from gallery.faulty import HALVES, HEALTHY
from measure import record
from tiny.tiny_site import written


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one page that needs a GPU and one that needs none, and a GPU."""
    other = HEALTHY.replace("A page", "B page")
    written(tmp_path, {"examples/cuda/page.py": HALVES, "examples/cuda/needs_none.py": other})
    (tmp_path / "conf").symlink_to(record.CONF)
    monkeypatch.setattr(record, "CONF", tmp_path / "conf")
    monkeypatch.setattr(process, "find_gpu", lambda: "Test GPU")
    return tmp_path


def test_it_needs_a_gpu_and_a_page_that_needs_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.main(["cuda/needs_none"]) == 2
    assert "no page with a half that needs a GPU: ['cuda/needs_none']" in capsys.readouterr().err
    monkeypatch.setattr(process, "find_gpu", str)
    assert record.main([]) == 2 and "no CUDA device" in capsys.readouterr().err


def test_it_records_and_a_check_keeps_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = checkout / "examples/cuda/recordings/page"
    assert record.main(["--check"]) == 0 and not folder.exists()
    assert record.main([]) == 0 and capsys.readouterr().out.endswith("s, on Test GPU\n")
    manifest = json.loads((folder / recordings.MANIFEST).read_text(encoding="utf-8"))
    assert manifest["gpu"] == "Test GPU" and manifest["seconds"] > 0
    assert "tensor(42.," in (folder / recordings.OUTPUTS).read_text(encoding="utf-8")
    (checkout / "examples/cuda/page.py").write_text(HALVES.replace("y == 42", "y == 43"), encoding="utf-8")
    assert record.main(["--check"]) == 1 and ": AssertionError" in capsys.readouterr().err
