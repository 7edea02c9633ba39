"""What the next build does after one with warnings: it says them again, and reads nothing else."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gallery.faulty import HEALTHY
from tiny.tiny_site import ROOT, Build, build, written

SOUND = {"docs/sound.md": "# Sound\n\nText.\n"}
FILES = SOUND | {
    "examples/basics/one.py": HEALTHY,
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
    (site / "docs/read.md").write_text("# Mended\n\nText.\n", encoding="utf-8")
    (site / "docs/written.md").unlink()
    front = site / "docs/index.md"
    front.write_text(front.read_text(encoding="utf-8").replace("written\n", ""), encoding="utf-8")
    mended = build(site)
    assert mended.code == 0, mended.output
    again = build(site)
    assert again.code == 0 and read(again) == set(), again.output


FOREIGN = ("html/CNAME", "html/elsewhere/index.html", "html/elsewhere/notes.html.md", "doctrees/notes.txt")


def test_a_build_after_a_killed_one_makes_all_again_and_removes_no_foreign_file(tmp_path: Path) -> None:
    """The kill is played: a mark, and files that were being written."""
    site = written(tmp_path, SOUND)
    for name in FOREIGN:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text("mine", encoding="utf-8")
    first = build(site)
    assert first.code == 0, first.output
    (site / ".unfinished-html").write_text("", encoding="utf-8")
    pages = ("html/sound.html", "html/search-index.js", "html/.buildinfo")
    for half in (*pages, "doctrees/sound.doctree", "doctrees/environment.pickle"):
        (site / half).write_bytes((site / half).read_bytes()[:40])
    again = build(site)
    assert again.code == 0, again.output
    assert read(again) == {"index", "sound", "gallery/index"}
    assert "<p>Text.</p>" in (again.out / "sound.html").read_text(encoding="utf-8")
    assert {name: (site / name).read_text(encoding="utf-8") for name in FOREIGN} == dict.fromkeys(FOREIGN, "mine")


def test_a_build_that_failed_for_itself_is_followed_by_one_from_the_sources(tmp_path: Path) -> None:
    """As on a full disk: what was written then may be cut off. Where not even the lock can be written, a build says so."""
    site = written(tmp_path, SOUND)
    (site / ".lock").mkdir()  # for a super-user nothing is read-only
    refused = build(site)
    assert refused.is_refused_with("nothing can be written here; build in a checkout that is yours"), refused.output
    (site / ".lock").rmdir()
    (site / "html/sound.html").mkdir(parents=True)
    assert build(site).code != 0
    (site / "html/sound.html").rmdir()
    again = build(site)
    assert again.code == 0 and "starting from the sources" in again.output, again.output


def test_the_second_build_says_that_it_waits(tmp_path: Path) -> None:
    site = written(tmp_path, SOUND)
    (site / "build").mkdir()
    options = ["--conf-dir", str(ROOT / "conf"), "--doctree-dir", "build/doctrees", "docs", "build/html"]
    program = [sys.executable, "-m", "sphinx", *options]
    with (site / "build/.lock").open("w", encoding="utf-8") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        second = subprocess.Popen(program, cwd=site, stdout=subprocess.PIPE, encoding="utf-8")
        said = next((line for line in second.stdout if "another build" in line), "")
        held.close()
        rest = second.communicate()[0]
    assert "waiting until it has ended" in said and second.returncode == 0, rest


def test_a_warning_of_no_page_makes_the_next_build_start_from_the_sources(tmp_path: Path) -> None:
    """Nobody knows what to read again, to hear it again."""
    script = HEALTHY.replace("It does something.", ".. include:: /_static/part.txt")
    site = written(
        tmp_path, SOUND | {"examples/basics/one.py": script, "docs/_static/part.txt": ".. no-such-directive::\n"}
    )
    for done in (build(site), build(site)):
        assert done.code != 0 and "Unknown directive type" in done.output and "sound" in read(done)
