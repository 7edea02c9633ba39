"""A build is not begun if nothing has changed, and any change has it begin."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas.incremental import up_to_date
from atlas.incremental.up_to_date import GENERATED, SETTINGS, LastBuild
from sources import ROOT

FILES = (
    "conf/conf.py",
    "docs/index.md",
    "docs/gallery/graphs/page.rst",
    "examples/graphs/page.py",
    "requirements.txt",
    "noxfile.py",
    "build/html/index.html",
    "build/html/static/atlas.css",
)


@pytest.fixture
def last(tmp_path: Path) -> LastBuild:
    """A build that has just ended."""
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", encoding="utf-8")
    found = LastBuild(tmp_path, tmp_path / "build" / "html", also=(tmp_path / "noxfile.py",))
    found.keep(found.read())
    return found


def is_current(last: LastBuild) -> bool:
    return last.is_current(last.read())


def rewrite(path: Path) -> None:
    """Other text of the same length, and the time of before."""
    before = path.stat()
    path.write_text("TEXT", encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_nothing_to_do_where_nothing_has_changed(last: LastBuild) -> None:
    assert is_current(last)


def test_a_first_build_has_something_to_do(tmp_path: Path) -> None:
    assert not is_current(LastBuild(tmp_path, tmp_path / "build" / "html"))


@pytest.mark.parametrize("change", [rewrite, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_each_file_counts(name: str, change: Callable[[Path], None], last: LastBuild) -> None:
    change(last.root / name)
    assert not is_current(last)


@pytest.mark.parametrize("folder", ["conf", "docs", "examples/new", "build/html", *GENERATED])
def test_a_new_file_counts(folder: str, last: LastBuild) -> None:
    (last.root / folder).mkdir(parents=True, exist_ok=True)
    (last.root / folder / "new").touch()
    assert not is_current(last)


@pytest.mark.parametrize("name", ["conf/__pycache__/conf.pyc", "tests/test_conf.py", "build/doctrees/index.doctree"])
def test_what_makes_no_page_does_not_count(name: str, last: LastBuild) -> None:
    (last.root / name).parent.mkdir(parents=True)
    (last.root / name).touch()
    assert is_current(last)


def test_what_a_build_generates_is_none_of_its_sources(last: LastBuild) -> None:
    read = last.read()
    rewrite(last.root / "docs/gallery/graphs/page.rst")
    assert last.read() == read


@pytest.mark.parametrize("name", [*SETTINGS, "SOURCE_DATE_EPOCH"])
def test_each_setting_counts(name: str, last: LastBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "86400")
    assert not is_current(last)


def test_a_gpu_counts(last: LastBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up_to_date.gpu, "may_be_here", lambda: "changed")
    assert not is_current(last)


def test_a_source_saved_during_the_build_counts(last: LastBuild) -> None:
    read = last.read()
    rewrite(last.root / "docs/index.md")
    last.keep(read)
    assert not is_current(last)


def test_all_settings_that_a_build_reads_are_known() -> None:
    asked = re.compile(r"""environ(?:\.get\(|\[)["'](\w+)["']""")
    files = [ROOT / "conf" / "conf.py", *(ROOT / "conf" / "atlas").rglob("*.py")]
    found = {name for file in files for name in asked.findall(file.read_text(encoding="utf-8"))}
    # PATH: where programs lie, not what they do
    assert found - {"PATH"} == {*SETTINGS, "SOURCE_DATE_EPOCH"}
