"""An address that was published leads on: to a page that is there, on a host of static pages and by the rules for nginx."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.site_files.moved_pages import faults
from tiny.tiny_site import Build, build, written

SITE = "https://owner.example/some-fork/"
FILES = {
    "docs/guide/new.md": "# The *new* page\n\n## A part\n\nText.\n",
    "docs/stays.md": "# Stays\n\nText.\n",
    "docs/goes.md": "# Goes\n\nText.\n",
    "docs/published-pages.txt": "goes.html\nlong/gone.html\nstays.html\n",
}
MOVED = "# Why: a better name\ngoes.html guide/new.html\nlong/gone.html guide/new.html#a-part\n"
PAGES = {"index.html", "new.html"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of which a page that was published, and built here, is gone."""
    place = written(tmp_path_factory.mktemp("site"), FILES)
    built(place)
    (place / "docs/goes.md").unlink()
    front = place / "docs/index.md"
    front.write_text(front.read_text().replace("goes\n", ""))
    return place


def built(place: Path) -> Build:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_SITE", SITE)
        return build(place)


@pytest.fixture(scope="module")
def refused(folder: Path) -> Build:
    (folder / "docs/moved-pages.txt").unlink(missing_ok=True)
    return built(folder)


@pytest.fixture(scope="module")
def moved(folder: Path, refused: Build) -> Build:
    (folder / "docs/moved-pages.txt").write_text(MOVED)
    done = built(folder)
    assert done.code == 0, done.output
    return done


def test_a_published_page_that_is_gone_fails_the_build(refused: Build) -> None:
    assert refused.code != 0
    assert "docs/published-pages.txt:1: goes.html was published, and there is no such page now" in refused.output
    assert "add a line 'goes.html NEW-ADDRESS' to docs/moved-pages.txt" in refused.output


def read(done: Build, name: str) -> BeautifulSoup:
    return BeautifulSoup((done.out / name).read_text(encoding="utf-8"), "html.parser")


@pytest.mark.parametrize(
    ("old", "to"), [("goes.html", "guide/new.html"), ("long/gone.html", "../guide/new.html#a-part")]
)
def test_the_old_address_leads_on(moved: Build, old: str, to: str) -> None:
    page = read(moved, old)
    assert page.select_one("p a")["href"] == page.script["data-to"] == to
    assert page.select_one("p a").get_text() == "The new page"
    assert page.select_one("noscript meta[http-equiv=refresh]")["content"] == f"0; url={to}"
    assert page.select_one("meta[name=robots]")["content"] == "noindex"
    assert page.select_one("link[rel=canonical]")["href"] == f"{SITE}guide/new.html"
    assert ((moved.out / old).parent / to.partition("#")[0]).is_file()


def test_nothing_lists_the_old_address(moved: Build) -> None:
    for name in ("sitemap.xml", "llms.txt", "search-index.js", "objects.inv"):
        assert b"goes" not in (moved.out / name).read_bytes(), name
    assert not (moved.out / "goes.html.md").exists()


def test_all_of_them_run_one_script_which_the_policy_lists(moved: Build) -> None:
    scripts = {read(moved, name).script.string for name in ("goes.html", "long/gone.html")}
    assert len(scripts) == 1
    assert "sha256-" in (moved.out / "content-security-policy.conf").read_text()


def test_nginx_leads_on_below_the_path_of_the_site(moved: Build) -> None:
    assert (moved.out / "moved-pages.conf").read_text().splitlines() == [
        '"/some-fork/goes.html" "/some-fork/guide/new.html";',
        '"/some-fork/long/gone.html" "/some-fork/guide/new.html#a-part";',
    ]


def test_the_next_list_has_the_pages_of_today_and_those_before(moved: Build) -> None:
    assert (moved.out / "published-pages.txt").read_text().splitlines() == [
        *("gallery/index.html", "goes.html", "guide/new.html", "index.html", "long/gone.html", "stays.html"),
    ]


def test_a_later_build_writes_none_of_them_again(moved: Build) -> None:
    before = moved.times()
    again = built(moved.site)
    assert again.code == 0 and "goes.html" in before
    assert again.times() == before


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("old.html\n", "docs/moved-pages.txt:1: write the old address, a space, and the new one"),
        ("old.html new\n", "docs/moved-pages.txt:1: write the old address"),
        ("old.html#a new.html\n", "docs/moved-pages.txt:1: write the old address"),
        ("# Why\nold.html none.html\n", "docs/moved-pages.txt:2: it leads to none.html, which is no page"),
        ("index.html new.html\n", "docs/moved-pages.txt:1: index.html is a page of this site"),
        ("a.html b.html\nb.html new.html\n", "docs/moved-pages.txt:1: b.html has moved as well, see line 2"),
        ("a.html new.html\na.html index.html\n", "docs/moved-pages.txt:2: a.html stands in line 1 too"),
    ],
)
def test_a_line_that_leads_nowhere_is_refused(tmp_path: Path, listed: str, says: str) -> None:
    (tmp_path / "moved-pages.txt").write_text(listed)
    assert [fault[: len(says)] for fault in faults(tmp_path, PAGES)] == [says]


def test_an_anchor_that_is_missing_is_refused(moved: Build) -> None:
    path = moved.site / "docs/moved-pages.txt"
    path.write_text(MOVED.replace("#a-part", "#a-prt"))
    done = built(moved.site)
    path.write_text(MOVED)
    assert done.code != 0
    assert "docs/moved-pages.txt:3: guide/new.html has no anchor #a-prt" in done.output


def test_without_lists_nothing_is_asked(tmp_path: Path) -> None:
    assert not list(faults(tmp_path, PAGES))
