"""Pages, workflows and README name what there is, and each session is called or is for a person."""

from __future__ import annotations

import os
import re
import runpy
import sys
from unittest import mock

import pytest

from sources import ROOT

SESSIONS = re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"))
FOR_A_PERSON = ["lighthouse", "lock", "serve"]


def read_text(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def find_calls(*paths: str) -> set[str]:
    """The sessions that these files name, and those in these folders."""
    files = [
        file for path in paths for file in ([ROOT / path] if (ROOT / path).is_file() else (ROOT / path).iterdir())
    ]
    return {name for file in files for name in re.findall(r"nox -s (\w+)", file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("path", ["README.md", "docs/about", ".ci/run", ".github/workflows"])
def test_sessions_that_are_called_exist(path: str) -> None:
    assert find_calls(path) and find_calls(path) <= set(SESSIONS)


def test_each_is_called_by_a_workflow_or_is_for_a_person() -> None:
    assert sorted([*find_calls(".ci/run", ".github/workflows"), *FOR_A_PERSON]) == sorted(SESSIONS)


def test_readme_names_each_session_and_what_is_in_conf() -> None:
    readme = read_text("README.md")
    assert sorted(re.findall(r"^\| `(\w+)` \|", readme, flags=re.MULTILINE)) == sorted(SESSIONS)
    tree = readme.partition("## Where things are")[2].partition("\n## ")[0]
    parts = [f"conf/{path.name}" for path in (ROOT / "conf").iterdir() if path.name != "__pycache__"]
    assert not [part for part in parts if part not in tree]


@pytest.mark.parametrize("name", ["new_lesson", "new_error"])
def test_a_template_runs(name: str) -> None:
    assert "To write" in (runpy.run_path(str(ROOT / "docs" / "about" / f"{name}.py"))["__doc__"] or "")


def test_the_page_on_hosting_names_each_workflow() -> None:
    table = read_text("docs", "about", "hosting.md").partition("| workflow |")[2]
    workflows = sorted(path.stem for path in (ROOT / ".github/workflows").glob("*.yml"))
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == workflows


def test_the_page_on_the_code_names_files_that_are_there() -> None:
    named = re.findall(r"`([\w/]+\.(?:py|js|css|toml))`", read_text("docs", "about", "how-the-code-works.md"))
    assert named and not [file for file in named if not [*ROOT.glob(file), *(ROOT / "conf").rglob(file)]]


def test_a_release_and_ci_trust_no_page_of_an_earlier_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nox", mock.MagicMock())  # nox runs the tests, and is not in their environment
    make = runpy.run_path(str(ROOT / "noxfile.py"))["make_sphinx_options"]
    fresh = ["--fresh-env", "--write-all"]
    assert make([], False) == [] and make(["-q"], False) == ["-q"] and make([], True) == fresh
    assert make(["--release"], False) == [*fresh, "-D", "atlas_release=1"]
    assert make(["--only", "graphs/first_graph"], False) == ["-D", "atlas_only=graphs/first_graph"]


def test_a_read_only_checkout_and_an_old_python_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nox", mock.MagicMock())
    monkeypatch.setattr(os, "access", lambda *_: False)
    session = mock.Mock(**{"error.side_effect": SystemExit})
    with pytest.raises(SystemExit):
        runpy.run_path(str(ROOT / "noxfile.py"))["install_environment"](session)
    assert "Nothing can be written to" in session.error.call_args[0][0]
    monkeypatch.setattr(sys, "version_info", (3, 10))
    with pytest.raises(SystemExit, match=r"needs Python 3.11 or later; this nox runs with 3"):
        runpy.run_path(str(ROOT / "noxfile.py"))
