"""Each version has an environment of its own, made once; what cannot be had is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas.versions.measuring import environment

REQUIREMENTS = """\
# Compiled
torch==2.13.0
numpy==2.3.1
typing-extensions==4.15.0
    # via torch
sympy==1.14.0
ruff==0.13.1
"""
REPORT = {
    "install": [
        {"metadata": {"name": name}, "download_info": {"url": "file:///nowhere"}}
        for name in ("torch", "numpy", "typing_extensions")
    ]
}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What was called; pip would bring three packages."""
    called: list[tuple[str, ...]] = []

    def do(*command: str) -> None:
        called.append(command)
        if command[2] == "venv":
            (Path(command[-1]) / "bin").mkdir(parents=True)
            (Path(command[-1]) / "bin" / "python").touch()

    class Done:
        returncode, stdout, stderr = 0, json.dumps(REPORT), ""

    monkeypatch.setattr(environment, "_do", do)
    monkeypatch.setattr(environment.subprocess, "run", lambda *command, **options: Done)
    return called


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text(REQUIREMENTS)
    return path


def installed(commands: list[tuple[str, ...]]) -> list[list[str]]:
    """The packages of each call of pip."""
    return [[word for word in command[6:] if not word.startswith("-")] for command in commands if command[2] == "pip"]


def test_the_version_and_the_pins_that_it_does_not_bring(
    commands: list, requirements: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = environment.python(tmp_path / "home", "2.4.1", requirements)
    assert python == tmp_path / "home" / "2.4.1" / "bin" / "python"
    assert installed(commands) == [["torch==2.4.1", "numpy"], ["sympy==1.14.0", "ruff==0.13.1"]]
    assert "torch 2.4.1 and what it needs are 0.0 GiB or more to fetch, into" in capsys.readouterr().out


def test_an_old_version_gets_an_old_numpy(commands: list, requirements: Path, tmp_path: Path) -> None:
    environment.python(tmp_path / "home", "1.13.1", requirements)
    assert installed(commands)[0] == ["torch==1.13.1", "numpy<2", "matplotlib", "pandas", "scikit-learn"]


def test_it_is_made_once_until_the_requirements_change(commands: list, requirements: Path, tmp_path: Path) -> None:
    for _ in range(2):
        environment.python(tmp_path / "home", "2.4.1", requirements)
    assert len(commands) == 3
    requirements.write_text(REQUIREMENTS.replace("0.13.1", "0.13.2"))
    environment.python(tmp_path / "home", "2.4.1", requirements)
    assert len(commands) == 6


@pytest.mark.parametrize("version", [environment.NEWEST, environment.NIGHTLY])
def test_what_moves_is_resolved_each_time(commands: list, requirements: Path, tmp_path: Path, version: str) -> None:
    for _ in range(2):
        environment.python(tmp_path / "home", version, requirements)
    assert len(commands) == 6


@pytest.mark.parametrize("version", ["", "two", "2", "2.x", "../2.4.1", "2.4.1; rm"])
def test_what_is_no_version_is_refused(commands: list, requirements: Path, tmp_path: Path, version: str) -> None:
    with pytest.raises(environment.InstallError, match=r"is no version of PyTorch; write one such as 2\.14\.1"):
        environment.python(tmp_path / "home", version, requirements)
    assert not commands


def test_a_version_that_pip_does_not_find(
    commands: list, requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failed:
        returncode, stdout, stderr = 1, "", "WARNING: a\nERROR: No matching distribution found for torch==0.1.0"

    monkeypatch.setattr(environment.subprocess, "run", lambda *command, **options: Failed)
    with pytest.raises(
        environment.InstallError, match=r"pip finds no torch 0\.1\.0 for Python 3\.\d+: ERROR: No matching"
    ):
        environment.python(tmp_path / "home", "0.1.0", requirements)


def test_what_pip_says_when_it_fails() -> None:
    with pytest.raises(environment.InstallError, match=r"failed:\n.*No module named no_such_module"):
        environment._do("python3", "-m", "no_such_module")


def test_one_is_removed(commands: list, requirements: Path, tmp_path: Path) -> None:
    environment.python(tmp_path / "home", "2.4.1", requirements)
    environment.remove(tmp_path / "home", "2.4.1")
    assert not any((tmp_path / "home").iterdir())


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("2.4.1", (2, 4, 1)), ("2.14.1+cu130", (2, 14, 1)), ("2.16.0.dev20261101+cpu", (2, 16, 0))],
)
def test_numbers_of_a_version(version: str, numbers: tuple[int, ...]) -> None:
    assert environment.parts(version) == numbers
