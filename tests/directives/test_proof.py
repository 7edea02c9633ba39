"""The proof in numbers says what the build has counted, and follows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, Snapshot, build, written

PAGE = '"""\nPage {}\n======\n\nText.\n"""\n\nx = 1\n{}\n'
FILES = {
    "examples/modes/one.py": PAGE.format(1, "assert x\nassert x == 1"),
    "examples/graphs/two.py": PAGE.format(2, "assert x"),
    "docs/about/how-this-site-stays-true.md": "# True\n\nText.\n",
    "docs/proof.md": "# Proof\n\n```{proof}\n```\n",
}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    site = written(tmp_path_factory.mktemp("site"), FILES)
    done = build(site)
    assert done.code == 0, done.output
    return done, Snapshot.of(site)


def numbers(out: Path) -> dict[str, str]:
    """Each number by the page that it leads to."""
    page = BeautifulSoup((out / "proof.html").read_text(encoding="utf-8"), "html.parser")
    return {link["href"]: link.get_text() for link in page.select("article .proof a")}


def test_it_counts_asserts_and_pages_and_is_silent_about_what_is_not_there(built: Build) -> None:
    said = json.loads((built.out / "build.json").read_text(encoding="utf-8"))
    release = said["torch"].rpartition(".")[0]
    assert said["checks"] == 3
    assert numbers(built.out) == {
        "about/how-this-site-stays-true.html": f"3 asserts ran against PyTorch {release}",
        "gallery/index.html": "2 pages, each one script",
    }


def test_it_follows_what_is_counted(built: Build) -> None:
    (built.site / "examples/graphs/two.py").write_text(PAGE.format(2, "assert x\n" * 40), encoding="utf-8")
    assert build(built.site).code == 0
    assert numbers(built.out)["about/how-this-site-stays-true.html"].startswith("42 asserts")
