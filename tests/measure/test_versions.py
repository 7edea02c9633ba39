"""``nox -s versions``: what it asks, what it keeps, and how it ends where it cannot."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import versions

KINK, SIGN = "x.abs() at x = [0]", "x.sign() at x = [0]"
NOT_ASKED = {"rows": {"A row": {"1.0.0": "no", "2.0.0": "holds"}}, "messages": {}}


def data(**changed: Any) -> dict[str, Any]:
    """Of two versions; a kink differs."""
    kinds = {kind: {} for kind in (*versions.SUBJECTS, "signatures", "operators")}
    kinds["kinks"] = {KINK: {"1.0.0": "[0]", "2.0.0": "[1]"}, SIGN: {"1.0.0": "[0]"}}
    return {"versions": {"1.0.0": {}, "2.0.0": {}}, **kinds, **NOT_ASKED, **changed}


def found(torch: str, **kinks: str) -> dict[str, Any]:
    answers = {kind: {} for kind in (*versions.SUBJECTS, "signatures", "operators")}
    return {**answers, "torch": torch, "python": "3.11.7", "kinks": {KINK: "[1]", SIGN: "[0]", **kinks}}


def test_a_planted_change_is_a_difference_and_nothing_else_is() -> None:
    known = data()
    versions.add_version(known, found("2.10.0"))
    assert known["kinks"] == data()["kinks"] and list(known["versions"]) == ["1.0.0", "2.0.0", "2.10.0"]
    assert not list(versions.list_changes(known, "2.10.0"))
    versions.add_version(known, found("3.0.0", **{SIGN: "[9]"}))
    assert known["kinks"][SIGN] == {"1.0.0": "[0]", "3.0.0": "[9]"}
    assert list(versions.list_changes(known, "3.0.0")) == [f"- kinks: `{SIGN}`: `[0]` on 2.10.0, `[9]` on 3.0.0"]


def test_a_version_between_others_leaves_theirs() -> None:
    known = data()
    versions.add_version(known, found("1.5.0", **{SIGN: "[9]"}))
    assert known["kinks"][KINK] == {"1.0.0": "[0]", "1.5.0": "[1]"}
    assert known["kinks"][SIGN] == {"1.0.0": "[0]", "1.5.0": "[9]", "2.0.0": "[0]"}
    assert known["rows"] == NOT_ASKED["rows"]


def test_a_probe_that_is_new_or_gone() -> None:
    known = data()
    answers = found("1.0.0", new="[2]")
    del answers["kinks"][SIGN]
    versions.add_version(known, answers)
    assert known["kinks"] == {KINK: {"1.0.0": "[1]"}, "new": {"1.0.0": "[2]", "2.0.0": None}}


def test_a_function_that_a_version_lacks() -> None:
    known = data(signatures={"torch.f": {"1.0.0": "(x)"}})
    versions.add_version(known, found("3.0.0"))
    assert known["signatures"] == {"torch.f": {"1.0.0": "(x)", "3.0.0": None}}
    assert not list(versions.list_changes(known, "3.0.0"))


def test_the_data_are_as_they_are_written_and_hold_nothing_of_a_machine(tmp_path: Path) -> None:
    text = versions.DATA.read_text(encoding="utf-8")
    versions.write_data(json.loads(text), tmp_path / "data.json")
    assert (tmp_path / "data.json").read_text(encoding="utf-8") == text
    assert not re.findall(r"/(?:root|home|tmp|work|usr)/\S*|0x[0-9a-f]{8,}", text)
    assert not re.findall(r'"[0-9a-f]{12,}"', text)  # no source by its content: no edit makes a measurement necessary


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is written; nothing is installed, and the version answers otherwise to one probe."""
    file = tmp_path / "versions.json"
    file.write_text(json.dumps(data()))
    monkeypatch.setattr(versions, "DATA", file)
    monkeypatch.setattr(versions, "HOME", tmp_path / "home")
    monkeypatch.setattr(versions, "install_version", Path)
    monkeypatch.setattr(versions, "measure_version", lambda python: found(str(python), **{SIGN: "[9]"}))
    return file


def test_what_differs_is_kept_and_told(kept: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "home" / "3.0.0").mkdir(parents=True)
    versions.main(["3.0.0", "--remove", "--report", str(tmp_path / "report.md")])
    assert json.loads(kept.read_text())["kinks"][SIGN] == {"1.0.0": "[0]", "3.0.0": "[9]"}
    told = (tmp_path / "report.md").read_text()
    assert f"## torch 3.0.0\n\n- kinks: `{SIGN}`" in told and told in capsys.readouterr().out
    assert not (tmp_path / "home" / "3.0.0").exists()
    versions.main(["3.1.0", "--report", str(tmp_path / "none.md")])
    assert not (tmp_path / "none.md").exists()


# -- Environments ---------------------------------------------------------------------------------


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that make an environment; pip fails for torch 0.0.1."""
    commands: list[list[str]] = []

    class Done:
        def __init__(self, command: list[str], **_: Any) -> None:
            commands.append(command)
            self.returncode, self.stderr = int("torch==0.0.1" in command), "No matching distribution"

    monkeypatch.setattr(versions, "HOME", tmp_path)
    monkeypatch.setattr(versions.subprocess, "run", Done)
    return commands


def test_what_cannot_be_installed_is_said_and_tried_again(called: list[list[str]]) -> None:
    for _ in range(2):
        with pytest.raises(SystemExit, match=r"torch 0\.0\.1 cannot be installed:\nNo matching distribution"):
            versions.install_version("0.0.1")
    assert len(called) == 4
    with pytest.raises(SystemExit, match=r"'2\.14' is no version of PyTorch; write 2\.14\.1, newest"):
        versions.install_version("2.14")
    assert versions.install_version("here") == Path(sys.executable) and len(called) == 4


def test_another_python_does_not_see_the_packages_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    program = tmp_path / "python"
    answer = "import json, os, sys\nopen(sys.argv[3], 'w').write(json.dumps(os.environ.get('PYTHONPATH')))"
    program.write_text(f"#!{sys.executable}\n{answer}\n")
    program.chmod(0o755)
    assert versions.measure_version(program) is None
    program.write_text(f"#!{sys.executable}\nraise SystemExit(3)\n")
    with pytest.raises(SystemExit, match=r"--answer` ended with 3"):
        versions.measure_version(program)
