"""One page is built without the others, from what its author edits; links to the others are words, and a mistake is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.page_alone.sources import UnknownPageError, lay
from sources import ROOT
from tiny.small_repository import written as repository
from tiny.tiny_site import build, written

ALONE = ["-D", "atlas_page_alone=1"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "root")
    for chapter in ("graphs", "errors", "modes", "cuda"):
        (root / f"examples/{chapter}/GALLERY_HEADER.rst").write_text(f"{chapter}\n------\n\nSee :ref:`elsewhere`.\n")
    return root


def scripts(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.py") if path.is_file())


def test_the_site_has_the_page_that_is_edited(root: Path, tmp_path: Path) -> None:
    script = lay(root, "graphs/first", tmp_path / "site")
    assert scripts(tmp_path / "site") == ["examples/graphs/first.py"]
    assert script.resolve() == root / "examples/graphs/first.py"
    assert (script.parent / "GALLERY_HEADER.rst").read_text() == "graphs\n------\n"


@pytest.mark.parametrize("name", ["modes/third", "examples/modes/third.py"])
def test_another_page_takes_its_place(root: Path, tmp_path: Path, name: str) -> None:
    lay(root, "graphs/first", tmp_path / "site")
    lay(root, name, tmp_path / "site")
    assert scripts(tmp_path / "site") == ["examples/modes/third.py"]
    assert not (tmp_path / "site/examples/graphs/GALLERY_HEADER.rst").exists()


def test_laid_twice_nothing_is_written(root: Path, tmp_path: Path) -> None:
    def times() -> dict[Path, int]:
        return {path: path.lstat().st_mtime_ns for path in (tmp_path / "site").rglob("*") if not path.is_dir()}

    lay(root, "graphs/first", tmp_path / "site")
    before = times()
    lay(root, "graphs/first", tmp_path / "site")
    assert before and times() == before


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "name a page, as cuda/fifth"),
        ("first", "the chapters are cuda, errors, graphs, modes; is it graphs/first?"),
        ("graphs/first_one", "is it graphs/first? The chapter has first, second"),
        ("graphs/zzz", "there is no page graphs/zzz. The chapter has first, second"),
    ],
)
def test_a_page_that_is_not_there_is_refused(root: Path, tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UnknownPageError) as refused:
        lay(root, name, tmp_path / "site")
    assert says in str(refused.value) and not (tmp_path / "site").exists()


def test_the_command_says_so_too(root: Path) -> None:
    command = [sys.executable, ROOT / "conf/page_alone.py", "graphs/zzz", "--root", root]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("page: there is no page graphs/zzz")


def test_a_page_of_the_site_is_built(tmp_path: Path) -> None:
    lay(ROOT, "graphs/first_graph", tmp_path)
    done = build(tmp_path, options=ALONE)
    assert done.code == 0, done.output
    page = BeautifulSoup((done.out / "gallery/graphs/first_graph.html").read_bytes(), "html.parser")
    assert page.select(".graph") and page.select_one("p.claims")
    (next_page,) = (item for item in page.select("#see-also li") if item.get_text().startswith("Next:"))
    assert next_page.get_text().startswith("Next: Leaf tensors") and not next_page.select("a")


@pytest.mark.parametrize(
    ("link", "known"),
    [
        (":ref:`sphx_glr_gallery_graphs_first_graph.py`", True),
        (":ref:`words <sphx_glr_gallery_graphs>`", True),
        (":doc:`/guide/which-switch`", True),
        (":doc:`/gallery/errors/index`", True),
        (":term:`leaf`", True),
        (":ref:`sphx_glr_gallery_graphs_first_grph.py`", False),
        (":doc:`/guide/which-swich`", False),
    ],
)
def test_only_what_the_real_site_has_may_be_missing(tmp_path: Path, link: str, known: bool) -> None:
    example = f'"""\nA page\n======\n\nSee {link}.\n"""\n\nprint(1)\n'
    site = written(tmp_path, {"examples/basics/one.py": example})
    done = build(site, options=ALONE)
    assert (done.code == 0) == known, done.output
    assert known or "one.rst:" in done.output


def test_the_whole_site_may_miss_none(tmp_path: Path) -> None:
    example = '"""\nA page\n======\n\nSee :doc:`/guide/which-switch`.\n"""\n\nprint(1)\n'
    assert build(written(tmp_path, {"examples/basics/one.py": example})).code != 0
