"""A later build removes what earlier ones made and it no longer makes, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from atlas.site_files import prune
from gallery.faulty import HEALTHY
from tiny.tiny_site import ROOT, Build, build, written

PLOT = f"""{HEALTHY.replace("A page", "B page")}
# %%
# A plot.

import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.set_title("A line")
# figure: A line
"""
FILES = {
    "examples/basics/one.py": HEALTHY,
    "examples/basics/gone.py": PLOT,
    "docs/gone.md": "# Gone\n\n{download}`a file <_static/data.txt>`\n",
    "docs/moved.md": "# Moved\n\nText.\n",
    "docs/_static/data.txt": "1 2 3\n",
}
#: Of each kind that a build makes.
KINDS = (
    "gone.html",
    "gone.html.md",
    "_images/sphx_glr_gone_thumb.*",
    "_downloads/*/gone.py",
    "_downloads/*/data.txt",
)
#: Like each of these kinds, and brought by ``html_extra_path`` or by hand.
FOREIGN = (
    "google123.html",
    "notes.html.md",
    "gallery/other.html",
    "_images/sphx_glr_mine.png",
    "_downloads/1/mine.py",
)


def found(out: Path, patterns: tuple[str, ...]) -> list[str]:
    return [pattern for pattern in patterns if list(out.rglob(pattern))]


def without(site: Path, page: str) -> None:
    """Remove a page from the sources."""
    (site / "docs" / f"{page}.md").unlink()
    front = site / "docs" / "index.md"
    front.write_text(front.read_text().replace(f"{page}\n", ""))


def extra(site: Path) -> list[str]:
    """The option that has Sphinx copy ``extra`` to the site."""
    return ["-D", f"html_extra_path={site / 'extra'}"]


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Of four pages two have gone, and a file that leads on to a new address has taken the place of one of these."""
    site = written(tmp_path_factory.mktemp("site"), FILES)
    for path in [site / folder / name for folder in ("extra", "html/by-hand") for name in FOREIGN]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    first = build(site, options=extra(site))
    assert first.code == 0, first.output
    assert found(first.out, KINDS) == list(KINDS)
    for page in ("gone", "moved"):
        without(site, page)
    (site / "examples/basics/gone.py").unlink()
    (site / "extra/moved.html").write_text("moved")
    again = build(site, options=extra(site))
    assert again.code == 0, again.output
    return again


def test_what_is_gone_is_removed(later: Build) -> None:
    assert found(later.out, KINDS) == []


@pytest.mark.parametrize("name", [*FOREIGN, *(f"by-hand/{name}" for name in FOREIGN)])
def test_what_is_foreign_stays(later: Build, name: str) -> None:
    assert (later.out / name).read_text() == "mine"


def test_a_file_that_takes_the_place_of_a_page_stays(later: Build) -> None:
    assert (later.out / "moved.html").read_text() == "moved"
    assert not (later.out / "moved.html.md").exists()


def played(folder: Path, *pages: str) -> SimpleNamespace:
    """What prune sees of a build that makes these pages."""
    out = folder / "html"
    builder = SimpleNamespace(name="html", imagedir="_images", get_outfilename=lambda name: str(out / f"{name}.html"))
    env = SimpleNamespace(found_docs=set(pages), images={}, dlfiles={})
    for page in pages:
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / f"{page}.html").write_text(page)
    (folder / "doctrees").mkdir(exist_ok=True)
    config = SimpleNamespace(html_extra_path=[])
    return SimpleNamespace(
        **{"builder": builder, "env": env, "outdir": out, "srcdir": folder, "confdir": folder, "config": config},
        doctreedir=folder / "doctrees",
    )


def test_folders_that_only_held_what_is_gone_go_with_it(tmp_path: Path) -> None:
    prune.remove(played(tmp_path, "index", "deep/down/gone", "other/gone"), None)
    (tmp_path / "html/other/mine.txt").write_text("mine")
    prune.remove(played(tmp_path, "index"), None)
    left = sorted(path.relative_to(tmp_path / "html").as_posix() for path in (tmp_path / "html").rglob("*"))
    assert left == ["index.html", "other", "other/mine.txt"]


@pytest.mark.parametrize("damage", ["", "{"], ids=["missing", "damaged"])
def test_without_the_list_of_what_was_made_nothing_is_removed(tmp_path: Path, damage: str) -> None:
    prune.remove(played(tmp_path, "index", "gone"), None)
    (made,) = (tmp_path / "doctrees").iterdir()
    made.write_text(damage) if damage else made.unlink()
    prune.remove(played(tmp_path, "index"), None)
    assert (tmp_path / "html/gone.html").exists()


def test_another_output_folder_has_a_list_of_its_own(tmp_path: Path) -> None:
    prune.remove(played(tmp_path, "index", "gone"), None)
    elsewhere = played(tmp_path, "index")
    elsewhere.outdir = elsewhere.outdir.rename(tmp_path / "elsewhere")
    elsewhere.builder.get_outfilename = lambda name: str(tmp_path / "elsewhere" / f"{name}.html")
    prune.remove(elsewhere, None)
    assert (tmp_path / "elsewhere/gone.html").exists()


def test_what_a_killed_build_made_is_removed_as_well(tmp_path: Path) -> None:
    site = written(tmp_path, {"docs/gone.md": "# Gone\n\nText.\n", "docs/stays.md": "# Stays\n\nText.\n"})
    options = ["--no-color", "-c", str(ROOT / "conf"), "-b", "html", "-d", "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", "html"]
    with subprocess.Popen(command, cwd=site, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        said = any("dumping object inventory" in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGKILL)
    assert said and (site / "html" / "gone.html").exists()
    without(site, "gone")
    again = build(site)
    assert again.code == 0, again.output
    assert not (again.out / "gone.html").exists()
