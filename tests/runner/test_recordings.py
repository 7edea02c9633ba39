"""A recording is used only if script, outputs and manifest fit together. Recordings made on the CPU stand in here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas.runner import fingerprint, recordings
from atlas.runner.cache import Page
from runner.faulty import HEALTHY

FACTS = {"gpu": "Test GPU", "date": "2026-01-31", "versions": {"torch": "2.13.0"}}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    script = tmp_path / "examples" / "cuda" / "page.py"
    script.parent.mkdir(parents=True)
    script.write_text(HEALTHY)
    return Page(script, tmp_path / "docs" / "gallery" / "cuda")


@pytest.fixture
def recorded(page: Page, run: Callable) -> Page:
    outcome = run({"page": HEALTHY})["page"]
    recordings.write(page, outcome.job.place.made, recordings.folder_of(page), FACTS)
    return page


def edit_manifest(page: Page, change: Callable[[dict], object]) -> None:
    path = recordings.folder_of(page) / recordings.MANIFEST
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_a_page_without_a_recording(page: Page) -> None:
    assert recordings.look(page).fault == "it has not been recorded yet"


def test_a_page_without_outputs_depends_on_what_makes_it(page: Page) -> None:
    """It is made here, code and notebook; a page that is replayed depends on its recording alone."""
    of_page = fingerprint.of(page.script, recordings.look(page).depends_on)
    assert {"the script", "the recording", "the site's code in conf/atlas", "torch"} <= set(of_page)


def test_a_replayed_page_depends_on_its_recording(recorded: Page) -> None:
    of_page = fingerprint.of(recorded.script, recordings.look(recorded).depends_on)
    assert set(of_page) == {"the script", "the recording"}


def test_a_recording_that_fits(recorded: Page) -> None:
    found = recordings.look(recorded)
    assert found.fault == ""
    assert "page.rst" in found.manifest["outputs"]


def test_an_edited_script(recorded: Page) -> None:
    recorded.script.write_text(HEALTHY + "\n# changed\n")
    assert recordings.look(recorded).fault == "the script has changed since it was recorded"


def test_a_touched_output(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "page.rst").write_text("made up")
    assert recordings.look(recorded).fault == "its recorded page.rst is not what was recorded"


def test_a_missing_output(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "page.rst").unlink()
    assert recordings.look(recorded).fault == "its recorded page.rst is missing"


def test_an_added_output(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "more.png").write_text("x")
    assert "does not list" in recordings.look(recorded).fault


def test_a_missing_manifest(recorded: Page) -> None:
    (recordings.folder_of(recorded) / recordings.MANIFEST).unlink()
    assert recordings.look(recorded).fault == "its recording has no manifest.json"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"outputs": 3}'])
def test_a_manifest_that_is_not_one(recorded: Page, text: str) -> None:
    (recordings.folder_of(recorded) / recordings.MANIFEST).write_text(text)
    assert "manifest.json" in recordings.look(recorded).fault


@pytest.mark.parametrize("name", ["script", "outputs", "gpu", "date", "versions"])
def test_a_manifest_that_lacks_something(recorded: Page, name: str) -> None:
    edit_manifest(recorded, lambda manifest: manifest.pop(name))
    assert recordings.look(recorded).fault == f"its manifest.json does not say '{name}'"


def test_a_replayed_page_says_where_it_was_made(recorded: Page, tmp_path: Path) -> None:
    made = tmp_path / "made"
    recordings.replay(recorded, recordings.look(recorded), made)
    text = (made / "page.rst").read_text()
    assert "tensor(2., requires_grad=True)" in text
    assert ".. recorded::\n   :gpu: Test GPU\n   :date: 2026-01-31\n   :torch: 2.13.0" in text
    assert (made / "page.py.md5").is_file(), "sphinx-gallery must not run it"


def test_recording_needs_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import record

    monkeypatch.setattr(record.gpu, "describe", dict)
    assert record.main([]) == 2
    assert "no CUDA device" in capsys.readouterr().err
