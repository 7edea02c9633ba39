"""The date of a build is that of its commit or of SOURCE_DATE_EPOCH, and never today's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from atlas.site_files.date_of_sources import date_of
from atlas.toolbox import Refusal


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A commit of the 1st of May 2001, late in the evening in the west: in UTC it is the 2nd."""
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Front\n")
    who = {f"GIT_{role}_{what}": "a@b.example" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": "2000-01-01T00:00:00+0000", "GIT_COMMITTER_DATE": "2001-05-01T23:00:00-0500"}
    for command in (["init", "--quiet"], ["add", "docs"], ["commit", "--quiet", "--message", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, env=os.environ | who | when, check=True)
    return tmp_path


def test_it_is_the_day_of_the_commit(checkout: Path) -> None:
    assert date_of(checkout) == "2001-05-02"


@pytest.mark.parametrize("name", ["docs/index.md", "docs/new.md"])
def test_sources_that_are_not_committed_have_none(checkout: Path, name: str) -> None:
    (checkout / name).write_text("# Other\n")
    assert date_of(checkout) is None


def test_what_a_build_leaves_behind_does_not_count(checkout: Path) -> None:
    (checkout / "build").mkdir()
    (checkout / "build/index.html").write_text("made")
    assert date_of(checkout) == "2001-05-02"


def test_nor_does_a_repository_around_the_sources(checkout: Path) -> None:
    assert date_of(checkout / "docs") is None


def test_the_environment_decides(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    assert date_of(checkout) == "2026-09-21"


@pytest.mark.parametrize("said", ["yesterday", "9" * 30])
def test_what_is_no_time_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", said)
    with pytest.raises(Refusal, match="SOURCE_DATE_EPOCH is"):
        date_of(tmp_path)


def test_without_git_there_is_none(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert date_of(checkout) is None
