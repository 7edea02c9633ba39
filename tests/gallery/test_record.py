"""``conf/measure/record.py`` records what it is asked for, or says why not. Runs on the CPU stand in here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from atlas.gallery import process, recordings
from atlas.gallery.process import Job, Outcome
from atlas.gallery.scripts import Page
from gallery.faulty import HALVES, HEALTHY
from measure import record

GPU = {"gpu": "Test GPU", "cuda": "13.0", "driver": "13.0", "memory": 1}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one page that needs a GPU and one that needs none, and a GPU."""
    script = tmp_path / "examples" / "cuda" / "page.py"
    script.parent.mkdir(parents=True)
    script.with_name("GALLERY_HEADER.rst").write_text("Chapter\n-------\n", encoding="utf-8")
    script.write_text(HALVES, encoding="utf-8")
    script.with_name("needs_none.py").write_text(HEALTHY.replace("A page", "B page"), encoding="utf-8")
    (tmp_path / "conf").symlink_to(record.CONF)
    monkeypatch.setattr(record, "CONF", tmp_path / "conf")
    monkeypatch.setattr(process, "describe_gpu", lambda: GPU)
    return tmp_path


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits of the jobs, none of which runs."""
    seen: list[float] = []

    def run(jobs: Sequence[Job], *arguments: Any, **options: Any) -> Iterator[Outcome]:
        seen.extend(job.limits.seconds for job in jobs)
        return iter(())

    monkeypatch.setattr(process, "run_jobs", run)
    return seen


def test_it_needs_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(process, "describe_gpu", dict)
    assert record.main([]) == 2
    assert "no CUDA device" in capsys.readouterr().err


def test_it_records(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record.main([]) == 0
    assert capsys.readouterr().out.endswith("s, on Test GPU\n")
    folder = checkout / "examples/cuda/recordings/page"
    manifest = json.loads((folder / recordings.MANIFEST).read_text(encoding="utf-8"))
    assert manifest["gpu"] == "Test GPU" and manifest["seconds"] > 0
    assert "tensor(42.," in (folder / recordings.OUTPUTS).read_text(encoding="utf-8")


FAULTS = """\
import threading
import warnings

import torch

assert False, "the first"
y = torch.ones(2) @ torch.ones(3)


class Holder:
    def look(self):
        assert self is None, "in a method"
        return 5


assert Holder().look() == 6
thread = threading.Thread(target=Holder().look)
thread.start()
thread.join()
for number in range(2):
    assert number == 1, f"of number {number}"
warnings.warn("old")
assert __name__ == "__main__" and Holder().__module__ == "__main__"
"""


def test_a_check_names_all_that_fails(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A GPU may be there for half an hour only: to learn one fault at a time would use it up."""
    script = checkout / "examples/cuda/page.py"
    assert record.main(["--check"]) == 0
    assert capfd.readouterr().out == "record: cuda/page: nothing fails\n"
    assert record.main(["--check-script", str(script)]) == 0
    mark = "# %%\n# .. needs-a-gpu::\n"
    script.write_text(FAULTS + mark, encoding="utf-8")
    assert record.main(["--check"]) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith(str(script))]
    assert [re.sub(r"cell \d+: ", "", line.removeprefix(f"{script}:")) for line in said] == [
        "6: AssertionError: the first",
        f"7: RuntimeError: {said[1].partition('RuntimeError: ')[2]}",
        "12: AssertionError: in a method",
        "16: AssertionError",
        "12: AssertionError: in a method",
        "21: AssertionError: of number 0",
        "22: UserWarning: old",
    ]


def test_a_page_that_needs_no_gpu_is_not_recorded(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record.main(["cuda/needs_none"]) == 2
    assert "no page with a half that needs a GPU: cuda/needs_none" in capsys.readouterr().err


@pytest.mark.parametrize(("asked", "seconds"), [("", 300), ("= 30", 300), ("= 900", 900)])
def test_a_page_may_take_longer(checkout: Path, limits: list[float], asked: str, seconds: float) -> None:
    (checkout / "examples/cuda/page.py").write_text(
        f"{HALVES}# sphinx_gallery_time_limit {asked}\n", encoding="utf-8"
    )
    assert record.main([]) == 0
    assert limits == [seconds]


def test_a_script_that_is_edited_while_it_runs_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its recording is of what ran, and fits the script no more."""
    script, run = checkout / "examples/cuda/page.py", process.run_jobs

    def edit_meanwhile(*arguments: Any, **options: Any) -> Iterator[Outcome]:
        for outcome in run(*arguments, **options):
            script.write_text(HALVES + "# edited\n", encoding="utf-8")
            yield outcome

    monkeypatch.setattr(process, "run_jobs", edit_meanwhile)
    assert record.main([]) == 1
    assert "record: cuda/page: the script was edited while it ran; record it again" in capsys.readouterr().err
    script.write_text(HALVES, encoding="utf-8")
    assert recordings.read_recording(Page(script, checkout)).fault == ""


def test_nothing_runs_where_it_could_not_be_kept(
    checkout: Path, limits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    notes = checkout / "out" / "cuda" / "page" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine", encoding="utf-8")
    assert record.main(["--out", str(checkout / "out")]) == 2
    assert "it is no recording; move it away" in capsys.readouterr().err
    assert limits == [] and notes.exists()
