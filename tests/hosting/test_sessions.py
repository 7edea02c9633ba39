"""Each session of nox is named where people look for it and called where it must be, and none is that is not there."""

from __future__ import annotations

import re
import runpy
import sys
from unittest import mock

import pytest

from sources import ROOT

SESSIONS = re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"))
FOR_A_PERSON = ["bench", "lighthouse", "lock", "new", "page", "reference", "serve"]


def called(*paths: str) -> set[str]:
    """The sessions that these files name, and those in these folders."""
    files = [
        file for path in paths for file in ((ROOT / path).iterdir() if (ROOT / path).is_dir() else [ROOT / path])
    ]
    return {name for file in files for name in re.findall(r"nox -s (\w+)", file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("path", ["README.md", "docs/about", ".ci/run", ".github/workflows"])
def test_sessions_that_are_called_exist(path: str) -> None:
    names = called(path)
    assert names and names <= set(SESSIONS)


def test_each_is_called_by_a_workflow_or_is_for_a_person() -> None:
    assert sorted([*called(".ci/run", ".github/workflows"), *FOR_A_PERSON]) == sorted(SESSIONS)


def test_readme_has_each_in_its_table() -> None:
    _, _, table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| session |")
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == sorted(SESSIONS)


@pytest.mark.parametrize(
    ("options", "ci", "expected"),
    [
        ([], "", []),
        (["--why"], "", []),
        (["--release"], "", ["--fresh-env", "--write-all"]),
        ([], "true", ["--fresh-env", "--write-all"]),
    ],
)
def test_a_release_and_ci_trust_no_page_of_an_earlier_build(
    options: list[str], ci: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setitem(sys.modules, "nox", mock.MagicMock())  # nox runs the tests, and is not in their environment
    assert runpy.run_path(str(ROOT / "noxfile.py"))["from_scratch"](options) == expected
