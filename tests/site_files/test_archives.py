"""What a published build makes to take along: whole, the same twice, with true sizes beside the links, and not made again."""

from __future__ import annotations

import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from atlas.directives.site_file import ARCHIVES, EXAMPLES, SITE
from atlas.site_files.archives import FOLDER
from atlas.site_files.file_sizes import in_words
from gallery.faulty import HEALTHY
from markup import addresses
from tiny.tiny_site import Build, Snapshot, build, written

PAGE = (
    f"# Take along\n\nText.\n\n- {{site-file}}`{SITE}`\n- {{site-file}}`{EXAMPLES}`\n- {{site-file}}`llms-full.txt`\n"
)
FILES = {
    "docs/about/take.md": PAGE,
    "docs/text.md": "# Text\n\nText.\n",
    "docs/search.md": "# Search\n\nText.\n",
    "examples/basics/one.py": HEALTHY,
}
MADE = (*ARCHIVES, "about/take.html", "about/take.html.md", "llms-full.txt", "text.html")


@pytest.fixture(scope="module", autouse=True)
def publishing() -> pytest.MonkeyPatch:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_COMMIT", "0123456789abcdef0123456789abcdef01234567")
        patch.setenv("SOURCE_DATE_EPOCH", "1790000000")
        yield patch


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    done = build(written(tmp_path_factory.mktemp("take") / "site", FILES))
    assert done.code == 0, done.output
    return done, Snapshot.of(done.site)


def names(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as found:
        return [name.removeprefix(f"{FOLDER}/") for name in found.namelist()]


def read(path: Path) -> BeautifulSoup:
    """A page as it is now: builds write it again."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def times(out: Path) -> dict[str, int]:
    return {name: (out / name).stat().st_mtime_ns for name in MADE}


def test_two_builds_make_the_same_bytes(built: Build, tmp_path: Path) -> None:
    other = build(written(tmp_path / "another-name", FILES))
    assert {name: (built.out / name).read_bytes() for name in MADE} == {
        name: (other.out / name).read_bytes() for name in MADE
    }


def test_a_page_says_how_large_each_is(built: Build) -> None:
    page = read(built.out / "about/take.html")
    said = {link["href"]: link.find_next_sibling("span").get_text() for link in page.select("a.site-file")}
    assert said == {
        f"../{name}": f" ({in_words((built.out / name).stat().st_size)})" for name in (*ARCHIVES, "llms-full.txt")
    }


def test_a_build_with_nothing_to_do_writes_none_again(built: Build) -> None:
    before = times(built.out)
    assert build(built.site).code == 0
    assert times(built.out) == before


def test_an_edit_is_in_the_archive_of_the_next_build(built: Build) -> None:
    (built.site / "docs/text.md").write_text("# Text\n\nAnother text.\n")
    before = times(built.out)
    assert build(built.site).code == 0
    with zipfile.ZipFile(built.out / SITE) as archive:
        assert "Another text." in archive.read(f"{FOLDER}/text.html").decode()
    after = times(built.out)
    assert {name for name in MADE if after[name] != before[name]} == {SITE, "llms-full.txt", "text.html"}


def test_a_damaged_archive_is_made_again(built: Build) -> None:
    whole = (built.out / EXAMPLES).read_bytes()
    (built.out / EXAMPLES).write_bytes(whole[:100])
    assert build(built.site).code == 0
    assert (built.out / EXAMPLES).read_bytes() == whole


def test_the_site_is_whole_in_its_archive(built: Build, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.out / SITE) as archive:
        archive.extractall(tmp_path)
    folder, lost = tmp_path / FOLDER, []
    for path in folder.rglob("*.html"):
        for _element, address in addresses(read(path)):
            parts = urlsplit(address)
            if not parts.scheme and not parts.netloc and not (path.parent / unquote(parts.path)).exists():
                lost.append((path.name, address))
    assert not lost
    assert {path.name for path in folder.glob("*.html")} >= {"index.html", "text.html"}
    assert {"search-index.js", "link-previews.js", "llms-full.txt", "_static/atlas.css"} <= set(
        names(built.out / SITE)
    )
    assert not {"404.html", "sitemap.xml", "content-security-policy.conf", *ARCHIVES} & set(names(built.out / SITE))


def test_the_page_in_the_archive_names_no_sizes_and_the_markdown_neither(built: Build) -> None:
    with zipfile.ZipFile(built.out / SITE) as archive:
        page = archive.read(f"{FOLDER}/about/take.html").decode()
    assert f"<code>{SITE}</code>" in page and 'href="../llms-full.txt"' in page
    for text in (page, (built.out / "about/take.html.md").read_text(), (built.out / "llms-full.txt").read_text()):
        assert " KB)" not in text and " MB)" not in text


def test_scripts_and_notebooks_are_in_folders_of_their_chapters(built: Build) -> None:
    assert names(built.out / EXAMPLES) == ["LICENSE", "basics/one.ipynb", "basics/one.py"]


def test_a_build_that_is_not_published_has_none_and_says_so(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATLAS_COMMIT")
    assert build(built.site).code == 0
    assert not [name for name in ARCHIVES if (built.out / name).exists()]
    page = read(built.out / "about/take.html")
    assert [link["href"] for link in page.select("a.site-file")] == ["../llms-full.txt"]
    assert f"{SITE} (made when the site is published)" in page.get_text()


def test_a_file_that_no_build_makes_is_refused(tmp_path: Path) -> None:
    done = build(written(tmp_path, {"docs/wrong.md": "# Wrong\n\nText.\n\n{site-file}`lms.txt`\n"}))
    assert done.code != 0
    assert "docs/wrong.md:5: ERROR: this build makes no file lms.txt" in done.output


def test_all_pages_are_in_one_file(built: Build) -> None:
    text = (built.out / "llms-full.txt").read_text()
    assert text.startswith("# Autograd Atlas\n\n")
    sources = [line for line in text.splitlines() if line.startswith("Source: ")]
    assert sources == [
        f"Source: https://autograd-atlas.example/{page}.html"
        for page in ("about/take", "text", "search", "gallery/index", "gallery/basics/index")
    ]
    assert "\n# Text\n\nText.\n" in text
