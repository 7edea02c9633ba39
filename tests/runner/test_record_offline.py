"""Recording without a network: from a folder of wheels to recordings beside their scripts. The CPU stands in for a GPU here."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import record_offline
from atlas.runner.model import Page
from atlas.runner.outputs import recordings
from runner.faulty import HALVES

#: What a wheel for the stand-in brings. The pages import it, so they run only where it was installed.
BROUGHT = "brought_along"


def stand_in(folder: Path) -> Path:
    """A checkout with a GPU that is none, and a page in each of two chapters, of which one fails."""
    ignore = shutil.ignore_patterns("__pycache__", "static", "templates")
    shutil.copytree(record_offline.CONF, folder / "conf", ignore=ignore)
    with (folder / "conf/atlas/runner/gpu.py").open("a", encoding="utf-8") as code:
        code.write("\n\ndef describe():\n    return {'gpu': 'Stand-in', 'cuda': '0', 'driver': '0', 'memory': 1}\n")
    for chapter in ("cuda", "memory"):
        (folder / "examples" / chapter).mkdir(parents=True)
    good = HALVES.replace("import torch\n", f"import torch\nimport {BROUGHT}\n")
    (folder / "examples/cuda/good.py").write_text(good)
    (folder / "examples/memory/wrong.py").write_text(good.replace("y == 42", "y == 43"))
    return folder


def wheel(folder: Path) -> Path:
    """A folder with one wheel."""
    folder.mkdir()
    about = f"{BROUGHT}-1.dist-info"
    with zipfile.ZipFile(folder / f"{BROUGHT}-1-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{BROUGHT}.py", "")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {BROUGHT}\nVersion: 1\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return folder


def test_there_and_back(tmp_path: Path) -> None:
    checkout, out = stand_in(tmp_path / "checkout"), tmp_path / "out"
    script = [sys.executable, str(checkout / "conf" / "record_offline.py")]
    done = subprocess.run(
        [*script, "record", str(wheel(tmp_path / "wheels")), str(out)], capture_output=True, text=True
    )
    assert done.returncode == 1, "one page was not recorded"
    assert sorted(file.name for file in out.iterdir()) == ["check.txt", "record.txt", record_offline.ARCHIVE]
    checked, recorded = ((out / name).read_text() for name in ("check.txt", "record.txt"))
    assert "record: cuda/good: nothing fails" in checked and "record: memory/wrong: FAILED" in checked
    assert "assert y == 43" in checked and "examples/memory/wrong.py" in recorded
    assert checked + recorded == done.stdout
    back = subprocess.run([*script, "unpack", str(out / record_offline.ARCHIVE)], capture_output=True, text=True)
    assert (back.stdout, back.stderr) == ("record: cuda/good: recorded\n", "")
    page = Page(checkout / "examples/cuda/good.py", checkout / "docs/gallery/cuda")
    recording = recordings.look(page)
    assert recording.fault == "" and recording.manifest["gpu"] == "Stand-in"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with a recording of one page, and the checkout that it is of."""
    monkeypatch.setattr(record_offline, "CONF", tmp_path / "conf")
    script = tmp_path / "examples" / "cuda" / "page.py"
    script.parent.mkdir(parents=True)
    script.write_text(HALVES)
    made = tmp_path / "made"
    made.mkdir()
    shutil.copy(script, made)
    (made / "page.rst").write_text("a page")
    page = Page(script, tmp_path)
    facts = {"gpu": "Test GPU", "date": "2026-01-01", "versions": {"torch": "2.13.0"}}
    recordings.write(page, made, recordings.folder_of(page), facts)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as packed:
        packed.add(recordings.folder_of(page), page.name)
    shutil.rmtree(recordings.folder_of(page).parent)
    return tmp_path / "packed.tar.gz"


def test_what_fits_is_put_beside_its_script(archive: Path) -> None:
    assert record_offline.unpack(archive) == 0
    assert (archive.parent / "examples/cuda/recordings/page/page.rst").read_text() == "a page"


@pytest.mark.parametrize("gone", [False, True])
def test_what_does_not_fit_is_refused_by_name(archive: Path, capsys: pytest.CaptureFixture[str], gone: bool) -> None:
    script = archive.parent / "examples/cuda/page.py"
    script.unlink() if gone else script.write_text(HALVES + "# edited\n")
    assert record_offline.unpack(archive) == 1
    said = "there is no such page" if gone else "its code has changed since it was recorded"
    assert capsys.readouterr().err == f"record: cuda/page: {said}\n"
    assert not (archive.parent / "examples/cuda/recordings").exists()


def test_what_is_not_on_a_machine_for_training_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip is asked for wheels of the pinned versions, for that machine's Python."""
    asked: list[list[str]] = []

    def run(command: list[str]) -> subprocess.CompletedProcess:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert record_offline.main(["pack", str(tmp_path / "wheels"), "--python", "3.13"]) == 0
    (command,) = asked
    assert command[command.index("--python-version") + 1] == "3.13"
    assert Path(command[command.index("--constraint") + 1]).read_text().count("sphinx-gallery==") == 1
    assert command[-len(record_offline.PACKAGES) :] == list(record_offline.PACKAGES)
