"""``conf/record.py`` records what it is asked for, or says why not. Runs on the CPU stand in here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import record
from atlas.runner import gpu
from atlas.runner.model import Page
from atlas.runner.outputs import recordings
from atlas.runner.processes import pool
from runner.faulty import HALVES, HEALTHY

GPU = {"gpu": "Test GPU", "cuda": "13.0", "driver": "13.0", "memory": 1}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one page that needs a GPU and one that needs none, and a GPU."""
    script = tmp_path / "examples" / "cuda" / "page.py"
    script.parent.mkdir(parents=True)
    script.write_text(HALVES)
    script.with_name("needs_none.py").write_text(HEALTHY)
    (tmp_path / "conf").symlink_to(record.CONF)
    monkeypatch.setattr(record, "CONF", tmp_path / "conf")
    monkeypatch.setattr(gpu, "describe", lambda: GPU)
    return tmp_path


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits of the jobs, none of which runs."""
    seen: list[float] = []

    def run(jobs: Sequence[pool.Job], *arguments: Any, **options: Any) -> Iterator[pool.Outcome]:
        seen.extend(job.limits.seconds for job in jobs)
        return iter(())

    monkeypatch.setattr(pool, "run", run)
    return seen


def test_it_needs_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu, "describe", dict)
    assert record.main([]) == 2
    assert "no CUDA device" in capsys.readouterr().err


def test_it_records(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for said in ("s, on Test GPU\n", "and stays\n"):
        assert record.main([]) == 0
        assert capsys.readouterr().out.endswith(said)
    manifest = json.loads((checkout / "examples/cuda/recordings/page" / recordings.MANIFEST).read_text())
    assert manifest["gpu"] == "Test GPU"
    assert "page.rst" in manifest["outputs"]
    recorded = (checkout / "examples/cuda/recordings/page/page.rst").read_text()
    assert "tensor(2.," in recorded and "tensor(42.," in recorded, "a recording is of the whole script"


def test_a_page_that_needs_no_gpu_is_not_recorded(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record.main(["cuda/needs_none"]) == 2
    assert "no page with a half that needs a GPU: cuda/needs_none" in capsys.readouterr().err


@pytest.mark.parametrize(("asked", "seconds"), [("", 300), ("= 30", 300), ("= 900", 900)])
def test_a_page_may_take_longer(checkout: Path, limits: list[float], asked: str, seconds: float) -> None:
    (checkout / "examples/cuda/page.py").write_text(f"{HALVES}# sphinx_gallery_time_limit {asked}\n")
    assert record.main([]) == 0
    assert limits == [seconds]


def test_a_script_that_is_edited_while_it_runs_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its recording is of what ran, and fits the script no more."""
    script, run = checkout / "examples/cuda/page.py", pool.run

    def edit_meanwhile(*arguments: Any, **options: Any) -> Iterator[pool.Outcome]:
        for outcome in run(*arguments, **options):
            script.write_text(HALVES + "# edited\n")
            yield outcome

    monkeypatch.setattr(pool, "run", edit_meanwhile)
    assert record.main([]) == 1
    assert "record: cuda/page: the script was edited while it ran; record it again" in capsys.readouterr().err
    script.write_text(HALVES)
    assert recordings.look(Page(script, checkout)).fault == ""


def test_nothing_runs_where_it_could_not_be_kept(
    checkout: Path, limits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    notes = checkout / "out" / "cuda" / "page" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    assert record.main(["--out", str(checkout / "out")]) == 2
    assert "it is no recording; move it away" in capsys.readouterr().err
    assert limits == [] and notes.exists()
