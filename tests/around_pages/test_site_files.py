"""What is written once for the whole site: the site map, old addresses, archives; and what is refused."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from atlas.site_files import ARCHIVES, EXAMPLES, FOLDER, SITE, find_lost_addresses
from markup import addresses
from tiny.tiny_site import Build, build, written

Page = Callable[[str], BeautifulSoup]
HERE = "https://owner.example/fork/"


# -- Old addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "to"), [("old.html", "guide/which.html"), ("long/gone.html", "../guide/which.html#a-part")]
)
def test_an_old_address_leads_on(hosted: Build, old: str, to: str) -> None:
    page = BeautifulSoup((hosted.out / old).read_text(encoding="utf-8"), "html.parser")
    assert page.select_one("p a")["href"] == page.script["data-to"] == to
    assert page.select_one("noscript meta[http-equiv=refresh]")["content"] == f"0; url={to}"
    assert page.select_one("meta[name=robots]")["content"] == "noindex"
    assert ((hosted.out / old).parent / to.partition("#")[0]).is_file()
    for name in ("llms.txt", "search-index.js", "objects.inv"):
        assert old.encode() not in (hosted.out / name).read_bytes(), name


def test_the_next_list_of_addresses_has_those_of_today_and_of_before(hosted: Build) -> None:
    listed = (hosted.out / "published-pages.txt").read_text(encoding="utf-8").splitlines()
    assert {"old.html", "text.html", "index.html", "gallery/basics/two.html"} <= set(listed)
    assert listed == sorted(listed) and "long/gone.html" not in listed


@pytest.mark.parametrize(
    ("moved", "published", "says"),
    [
        ("old.html\n", "", "docs/moved-pages.txt:1: write the old address, a space, and the new one"),
        ("# Why\nold.html none.html\n", "", "docs/moved-pages.txt:2: it leads to none.html, which is no page"),
        ("index.html new.html\n", "", "docs/moved-pages.txt:1: index.html is a page of this site"),
        ("a.html new.html\na.html index.html\n", "", "docs/moved-pages.txt:2: a.html stands in line 1 too"),
        ("a.html new.html#b\n", "", "docs/moved-pages.txt:1: new.html has no anchor #b"),
        ("", "new.html\ngone.html\n", "docs/published-pages.txt:2: gone.html was published, and there is no"),
        ("gone.html new.html#a\n", "new.html\ngone.html\n", None),
    ],
)
def test_an_address_that_leads_nowhere_is_named(tmp_path: Path, moved: str, published: str, says: str | None) -> None:
    (tmp_path / "moved-pages.txt").write_text(moved)
    (tmp_path / "published-pages.txt").write_text(published)
    (tmp_path / "new.html").write_text('<p id="a">')
    found = list(find_lost_addresses(tmp_path, tmp_path, {"index.html", "new.html"}))
    assert [fault[: len(says or "")] for fault in found] == ([says] if says else [])


def test_a_build_without_an_address_that_was_published_fails(tmp_path: Path) -> None:
    done = build(written(tmp_path, {"docs/text.md": "# Text\n\nText.\n", "docs/published-pages.txt": "gone.html\n"}))
    assert done.code != 0
    assert "add a line 'gone.html NEW-ADDRESS' to docs/moved-pages.txt" in done.output


# -- To take along --------------------------------------------------------------------------------


def names(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as found:
        return [name.removeprefix(f"{FOLDER}/") for name in found.namelist()]


def test_a_published_build_makes_two_archives(hosted: Build, hosted_page: Page) -> None:
    assert names(hosted.out / EXAMPLES) == [
        *("LICENSE", "basics/two.ipynb", "basics/two.py", "graphs/one.ipynb", "graphs/one.py")
    ]
    in_site = set(names(hosted.out / SITE))
    assert in_site >= {"index.html", "search-index.js", "llms.txt", "_static/atlas.css"}
    assert not {"404.html", "sitemap.xml", *ARCHIVES} & in_site
    found = [link["href"] for link in hosted_page("about/take").select("a.site-file")]
    assert found == [f"{HERE}{SITE}", "../llms.txt"]


def test_a_build_that_is_not_published_has_none_and_says_so(unhosted: Build, unhosted_page: Page) -> None:
    assert not [name for name in ARCHIVES if (unhosted.out / name).exists()]
    page = unhosted_page("about/take")
    assert [link["href"] for link in page.select("a.site-file")] == ["../llms.txt"]
    assert f"{SITE} (made when the site is published)" in page.get_text()


def test_the_site_is_whole_in_its_archive(hosted: Build, tmp_path: Path) -> None:
    with zipfile.ZipFile(hosted.out / SITE) as archive:
        archive.extractall(tmp_path)
    lost = []
    for path in (tmp_path / FOLDER).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "preload" not in page  # a browser refuses that in a folder, and says so
        for _element, address in addresses(BeautifulSoup(page, "html.parser")):
            parts = urlsplit(address)
            if not parts.scheme and not parts.netloc and not (path.parent / unquote(parts.path)).exists():
                lost.append((path.name, address))
    assert not lost
