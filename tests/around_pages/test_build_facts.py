"""What a build says that it was made from: to programs, and a date that is never today's."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from atlas.build_facts import find_changes, find_date
from tiny.tiny_site import ROOT, Build, build, written


def test_a_program_can_read_what_a_site_was_made_from(hosted: Build, unhosted: Build) -> None:
    facts = {"torch": version("torch").partition("+")[0], "pages": 15, "checks": 3, "not_recorded": ["gap"]}
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert json.loads((hosted.out / "build.json").read_text()) == {"commit": commit, "date": "2026-09-21", **facts}
    assert json.loads((unhosted.out / "build.json").read_text()) == {"commit": None, "date": None, **facts}


def test_the_address_of_the_site_ends_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of pages are appended to it."""
    for address in ("https://owner.example/fork", "https://owner.example/fork/"):
        monkeypatch.setenv("ATLAS_SITE", address)
        assert runpy.run_path(str(ROOT / "conf" / "conf.py"))["html_baseurl"] == "https://owner.example/fork/"


# -- The date -------------------------------------------------------------------------------------


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


def test_it_is_the_day_of_the_commit_of_these_sources(checkout: Path) -> None:
    (checkout / "build").mkdir()
    (checkout / "build/index.html").write_text("what a build leaves behind does not count")
    assert find_date(checkout) == "2001-05-02"
    assert find_date(checkout / "docs") is None  # a repository around the sources says nothing of them


def test_a_file_has_the_day_of_the_commit_that_last_changed_it(checkout: Path, tmp_path: Path) -> None:
    assert find_changes(checkout)["docs/index.md"] == "2001-05-02"
    assert not find_changes(checkout / "docs")
    (checkout / ".git/shallow").write_text(
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True).stdout
    )
    assert not find_changes(checkout), "where the history is cut, its first commit is not what changed a file"


@pytest.mark.parametrize("name", ["docs/index.md", "docs/new.md"])
def test_sources_that_are_not_committed_have_none(checkout: Path, name: str) -> None:
    (checkout / name).write_text("# Other\n")
    assert find_date(checkout) is None


def test_the_environment_decides(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # no git
    assert find_date(checkout) is None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    assert find_date(checkout) == "2026-09-21"


def test_a_checkout_of_another_user_is_named_with_the_way_out(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a folder that is mounted into a container: git reads nothing of it, and the site would lose its date silently."""
    site = written(checkout, {"docs/text.md": "# Text\n\nText.\n"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "true")
    done = build(site)
    assert done.code != 0
    assert f"git config --global --add safe.directory {site}" in done.output
