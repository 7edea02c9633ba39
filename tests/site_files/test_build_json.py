"""A build says what it was made from, at the end of each page and to a program; only one that is published names its commit."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup, Tag

from atlas.site_files.build_json import check
from atlas.toolbox import Refusal
from gallery.faulty import HEALTHY
from tiny.tiny_site import Build, build, written

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "https://github.com/someone/atlas"
FILES = {"examples/basics/one.py": HEALTHY, "examples/basics/two.py": HEALTHY + "assert x < 3\n"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("site"), FILES)


@pytest.fixture(scope="module")
def published_site(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """In a folder of its own: another test's build must not write over it."""
    folder = written(tmp_path_factory.mktemp("published"), FILES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_COMMIT", COMMIT)
        patch.setenv("ATLAS_REPOSITORY", REPOSITORY)
        patch.setenv("SOURCE_DATE_EPOCH", "1790000000")
        return build(folder)


def line(done: Build, page: str) -> Tag:
    (said,) = BeautifulSoup((done.out / page).read_text(encoding="utf-8"), "html.parser").select(".built")
    return said


def test_unpublished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATLAS_COMMIT", raising=False)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    done = build(folder)
    assert json.loads((done.out / "build.json").read_text()) == {
        "commit": None,
        "date": None,
        "torch": version("torch").partition("+")[0],
        "pages": 5,
        "checks": 3,
        "not_recorded": [],
    }
    torch = version("torch").partition("+")[0]
    assert line(done, "index.html").get_text() == f"Built with PyTorch {torch}."
    assert (
        line(done, "gallery/basics/one.html").get_text()
        == f"Built with PyTorch {torch}. One assert ran on this page."
    )


def test_published(published_site: Build) -> None:
    assert published_site.code == 0, published_site.output
    facts = json.loads((published_site.out / "build.json").read_text())
    assert facts["commit"] == COMMIT and facts["date"] == "2026-09-21" and facts["checks"] == 3
    torch = version("torch").partition("+")[0]
    for page, up, ran in (
        ("index.html", "", ""),
        ("gallery/basics/one.html", "../../", "One assert ran on this page. "),
        ("gallery/basics/two.html", "../../", "2 asserts ran on this page. "),
    ):
        said = line(published_site, page)
        text = f"Built with PyTorch {torch} from commit 0123456 of 2026-09-21. {ran}3 ran on the whole site."
        assert said.get_text() == text
        assert [link["href"] for link in said.select("a")] == [f"{REPOSITORY}/commit/{COMMIT}", f"{up}build.json"]


def test_the_page_for_what_is_not_found_has_no_line(published_site: Build) -> None:
    assert "Built with" not in (published_site.out / "404.html").read_text()


def test_pages_whose_outputs_are_missing_are_named(tmp_path: Path) -> None:
    gap = "# Gap\n\n```{not-recorded} nobody had one\n```\n"  # as the runner marks a page that no recording fits
    done = build(written(tmp_path, {"docs/gap.md": gap, "docs/text.md": "# Text\n\nText.\n"}))
    assert json.loads((done.out / "build.json").read_text())["not_recorded"] == ["gap"], done.output


def test_what_is_no_commit_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_COMMIT", "main")
    done = build(folder)
    assert done.code != 0
    assert "ATLAS_COMMIT is 'main', which is no hash of a commit" in done.output


@pytest.mark.parametrize(
    "address", ["", "owner.example/fork/", "https://owner.example/fork", "https:///", "https://a.b/?c/"]
)
def test_what_is_no_address_of_a_site_is_refused(address: str) -> None:
    with pytest.raises(Refusal, match=r"ATLAS_SITE is .* such as https://"):
        check(None, SimpleNamespace(html_baseurl=address, atlas_commit=""))


@pytest.mark.parametrize(
    "address", ["https://owner.example/", "http://localhost:8000/", "https://owner.example/some/fork/"]
)
def test_an_address_with_a_slash_at_its_end_is_accepted(address: str) -> None:
    check(None, SimpleNamespace(html_baseurl=address, atlas_commit=""))


def test_a_build_stops_without_the_slash(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_SITE", "https://owner.example/some-fork")
    done = build(folder)
    assert done.code != 0
    assert "ATLAS_SITE is 'https://owner.example/some-fork'" in done.output
