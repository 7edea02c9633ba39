"""Below a page that shows code stand its notebook, its script and what to install; a page that needs the site says so."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.directives.site_file import EXAMPLES
from atlas.site_files.archives import FOLDER
from tiny.tiny_site import Build, Snapshot, build, written

HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
RUNS = f"{HEAD}# Runs\n\nText.\n\n```{{code-cell}}\nimport numpy\n\nx = 1\nx\n```\n\n## More\n\nText.\n"
READS = f"{HEAD}# Reads\n\nText.\n\n```{{code-cell}}\nprint(open('data.txt').read())\n```\n"
FILES = {
    "docs/guide/runs.md": RUNS,
    "docs/guide/reads.md": READS,
    "docs/guide/data.txt": "1",
    "docs/plain.md": "# Plain\n\nText.\n\n```{doctest}\n:hide:\n\n>>> 1 + 1\n2\n```\n",
}
COLAB = "https://colab.research.google.com/github/someone/atlas/blob/notebooks/guide/runs.ipynb"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_REPOSITORY", "https://github.com/someone/atlas")
        patch.setenv("ATLAS_COMMIT", "0123456789abcdef0123456789abcdef01234567")
        done = build(written(tmp_path_factory.mktemp("try") / "site", FILES))
    assert done.code == 0, done.output
    return done, Snapshot.of(done.site)


def page(built: Build, name: str) -> BeautifulSoup:
    return BeautifulSoup((built.out / f"{name}.html").read_bytes(), "html.parser")


def test_it_offers_the_same_as_an_example(built: Build) -> None:
    (box,) = page(built, "guide/runs").select(".sphx-glr-footer")
    assert [link.get_text() for link in box.select("a")] == [
        "Open in Colab",
        "Download Jupyter notebook: runs.ipynb",
        "Download Python source code: runs.py",
    ]
    assert box.a["href"] == COLAB
    assert "numpy" in box.select_one(".install-line pre").get_text()
    for link in box.select("a[download]"):
        assert (built.out / "guide" / link["href"]).read_text() == made(
            built, link["href"].split("/")[-1]
        ).read_text()


def made(built: Build, name: str) -> Path:
    return built.site / "notebooks/guide" / name


def test_a_page_that_reads_a_file_of_the_site_says_so(built: Build) -> None:
    found = page(built, "guide/reads")
    assert not found.select(".sphx-glr-footer")
    assert (
        found.select_one(".runs-only-here").get_text().startswith("The code of this page needs data.txt of this site")
    )
    assert not made(built, "reads.ipynb").exists()


def test_a_page_that_shows_no_code_has_nothing(built: Build) -> None:
    assert not page(built, "plain").select(".sphx-glr-footer, .runs-only-here")


def test_it_is_no_example(built: Build) -> None:
    """Only an example leads to examples like it."""
    assert "Related pages" not in page(built, "guide/runs").get_text()


def test_they_are_in_the_archive(built: Build) -> None:
    with zipfile.ZipFile(built.out / EXAMPLES) as archive:
        names = {name.removeprefix(f"{FOLDER}/") for name in archive.namelist()}
    assert {"guide/runs.ipynb", "guide/runs.py"} <= names and not {"guide/reads.py", "plain.py"} & names


def test_a_build_with_nothing_to_do_leaves_them_alone(built: Build) -> None:
    before = made(built, "runs.ipynb").stat().st_mtime_ns, built.times()
    assert build(built.site).code == 0
    # without the address of its sources each page is written again; the third build has nothing to do
    before = made(built, "runs.ipynb").stat().st_mtime_ns, built.times()
    assert build(built.site).code == 0
    assert (made(built, "runs.ipynb").stat().st_mtime_ns, built.times()) == before


def test_what_a_page_no_longer_has_is_removed(built: Build) -> None:
    path = built.site / "docs/guide/runs.md"
    path.write_text("# Runs\n\nText alone.\n")
    assert build(built.site).code == 0
    assert not made(built, "runs.ipynb").exists() and not list(built.out.glob("_downloads/*/runs.*"))


def test_files_that_are_lost_are_made_again(built: Build) -> None:
    made(built, "runs.py").unlink()
    assert build(built.site).code == 0
    assert made(built, "runs.py").is_file()
