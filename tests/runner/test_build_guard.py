"""What the next build does after one with warnings: it says them again, and reads nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from atlas.runner.build_guard import Course
from runner.faulty import HEALTHY
from tiny.tiny_site import Build, build, written

FILES = {
    "examples/basics/one.py": HEALTHY,
    "docs/sound.md": "# Sound\n\nText.\n",
    "docs/read.md": "# Warns when read\n\n```{no-such-directive}\n```\n",
    "docs/written.md": "# Warns when written\n\n{any}`no-such-target`\n",
}
WARNINGS = {"read.md": "Unknown directive type", "written.md": "no-such-target"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("site"), FILES)


@pytest.fixture(scope="module")
def builds(site: Path) -> list[Build]:
    return [build(site) for _ in range(3)]


def read(done: Build) -> set[str]:
    return set(re.findall(r"reading sources\.\.\. \[ *\d+%\] (\S+)", done.output))


def test_each_build_says_all_warnings(builds: list[Build]) -> None:
    for done in builds:
        assert done.code != 0
        for file, said in WARNINGS.items():
            assert re.search(rf"{file}:\d+: (WARNING|ERROR): .*{said}", done.output), done.output


def test_a_build_after_warnings_reads_only_those_pages(builds: list[Build]) -> None:
    first, *later = builds
    assert {"read", "written", "sound", "gallery/basics/one"} <= read(first)
    for done in later:
        assert read(done) == {"read", "written"}, done.output
        assert "starting from the sources" not in done.output


def test_mended_pages_are_forgotten(builds: list[Build], site: Path) -> None:
    (site / "docs/read.md").write_text("# Mended\n\nText.\n")
    (site / "docs/written.md").unlink()
    front = site / "docs/index.md"
    front.write_text(front.read_text().replace("written\n", ""))
    mended = build(site)
    assert mended.code == 0, mended.output
    again = build(site)
    assert again.code == 0 and read(again) == set(), again.output


FOREIGN = ("html/CNAME", "html/elsewhere/index.html", "html/elsewhere/notes.html.md", "doctrees/notes.txt")


def test_a_build_after_a_killed_one_makes_all_again_and_removes_no_foreign_file(tmp_path: Path) -> None:
    """The kill is played: an empty mark, and files that were being written."""
    site = written(tmp_path, {"docs/sound.md": "# Sound\n\nText.\n"})
    for name in FOREIGN:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text("mine")
    first = build(site)
    assert first.code == 0, first.output
    (site / ".unfinished-html").write_text("")
    for half in ("html/sound.html", "html/search-index.js", "doctrees/sound.doctree", "doctrees/environment.pickle"):
        (site / half).write_bytes((site / half).read_bytes()[:40])
    again = build(site)
    assert again.code == 0, again.output
    assert read(again) == {"index", "sound", "gallery/index"}
    assert "<p>Text.</p>" in (again.out / "sound.html").read_text()
    assert {name: (site / name).read_text() for name in FOREIGN} == dict.fromkeys(FOREIGN, "mine")


def test_a_build_killed_while_it_noted_its_settings_does_not_stop_the_next(tmp_path: Path) -> None:
    """Sphinx raises IndexError for an empty .buildinfo: there must be none from when the mark is set until all is written."""
    out, course = tmp_path / "html", played(tmp_path)
    (out / ".buildinfo").write_text("# Sphinx build info version 1\n")
    course.read(course.app, None)
    assert not (out / ".buildinfo").exists()


def test_all_is_on_the_disk_before_the_mark_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a loss of power there are the pages, or the mark."""
    course = played(tmp_path)
    course.read(course.app, None)
    synced = []
    monkeypatch.setattr(os, "sync", lambda: synced.append(course.mark.read_text()))
    course.finish(course.app, None)
    assert synced == [""] and not course.mark.exists()


def played(folder: Path) -> Course:
    """The course of a build that writes below ``folder``, without Sphinx."""
    (folder / "html").mkdir()
    env = SimpleNamespace(found_docs=set())
    return Course(SimpleNamespace(outdir=folder / "html", doctreedir=folder / "doctrees", env=env))


def test_a_builder_says_what_another_was_warned_of(tmp_path: Path) -> None:
    """They share the doctrees, and in those a page that could not be read looks like any other."""
    site = written(tmp_path, {"examples/basics/one.py": HEALTHY, "docs/read.md": "# Good\n\nText.\n"})
    assert build(site).code == 0
    (site / "docs/read.md").write_text(FILES["docs/read.md"])
    for builder in ("doctest", "html"):
        done = build(site, builder)
        assert done.code != 0 and WARNINGS["read.md"] in done.output, done.output
    assert "starting from the sources" not in done.output


def test_a_warning_of_no_page_makes_the_next_build_start_from_the_sources(tmp_path: Path) -> None:
    """Nobody knows what to read again, to hear it again."""
    script = HEALTHY.replace("It does something.", ".. include:: /_static/part.txt")
    included = {"docs/_static/part.txt": ".. no-such-directive::\n"}
    site = written(tmp_path, {"examples/basics/one.py": script, "docs/sound.md": "# Sound\n\nText.\n", **included})
    for done in (build(site), build(site)):
        assert done.code != 0
        assert "Unknown directive type" in done.output
        assert "sound" in read(done)
