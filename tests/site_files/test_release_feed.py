"""The feed of the release notes: what RFC 4287 asks for, the same at every build, and readable far from the site."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup

from atlas.site_files.release_feed import FILE
from tiny.tiny_site import Build, build, written

ATOM = "{http://www.w3.org/2005/Atom}"
SITE = "https://owner.example/fork/"
NOTES = f"""# Release notes

What changed. The same as a feed: {{site-file}}`{FILE}`.

## 2026-12-24: a second <edition> & more

- [Text](../text.md#a-part), [elsewhere](https://other.example/a?b=1&c=2), {{site-file}}`llms.txt`, `"x" < y`

### Mended

- One sentence, [here](#mended).

## 2026-11-23: The first

It begins.
"""
FILES = {"docs/about/release-notes.md": NOTES, "docs/text.md": "# Text\n\nText.\n\n## A part\n\nText.\n"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_SITE", SITE)
        done = build(written(tmp_path_factory.mktemp("notes"), FILES))
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="module")
def feed(built: Build) -> ElementTree.Element:
    return ElementTree.parse(built.out / FILE).getroot()


def text(element: ElementTree.Element, name: str) -> str:
    (found,) = element.findall(f"{ATOM}{name}")
    return found.text


def links(element: ElementTree.Element) -> dict[str, str]:
    return {link.get("rel"): link.get("href") for link in element.findall(f"{ATOM}link")}


def content(entry: ElementTree.Element) -> BeautifulSoup:
    (found,) = entry.findall(f"{ATOM}content")
    assert found.get("type") == "html"
    return BeautifulSoup(found.text, "html.parser")


def test_the_feed_has_what_a_feed_must_have(feed: ElementTree.Element) -> None:
    assert feed.tag == f"{ATOM}feed"
    assert text(feed, "id") == SITE + FILE
    assert text(feed, "title") == "Autograd Atlas: Release notes"
    assert text(feed, "updated") == "2026-12-24T00:00:00Z"
    assert feed.find(f"{ATOM}author/{ATOM}name").text
    assert links(feed) == {"self": SITE + FILE, "alternate": f"{SITE}about/release-notes.html"}


def test_each_section_is_an_entry_with_its_day(feed: ElementTree.Element) -> None:
    entries = [
        [text(entry, name) for name in ("id", "title", "updated")] + [links(entry)["alternate"]]
        for entry in feed.findall(f"{ATOM}entry")
    ]
    page = f"{SITE}about/release-notes.html"
    assert entries == [
        [
            f"{page}#2026-12-24",
            "A second <edition> & more",
            "2026-12-24T00:00:00Z",
            f"{page}#a-second-more",
        ],
        [f"{page}#2026-11-23", "The first", "2026-11-23T00:00:00Z", f"{page}#the-first"],
    ]


def test_the_words_of_an_entry_are_those_of_the_page(feed: ElementTree.Element) -> None:
    newest, first = (content(entry) for entry in feed.findall(f"{ATOM}entry"))
    assert newest.select_one("code").get_text() == '"x" < y'
    assert "Mended" in newest.get_text() and "One sentence" in newest.get_text() and "¶" not in newest.get_text()
    assert first.get_text().strip() == "It begins."


def test_links_lead_from_anywhere(feed: ElementTree.Element) -> None:
    found = [link["href"] for entry in feed.findall(f"{ATOM}entry") for link in content(entry).select("[href]")]
    assert found == [
        f"{SITE}text.html#a-part",
        "https://other.example/a?b=1&c=2",
        f"{SITE}llms.txt",
        f"{SITE}about/release-notes.html#mended",
    ]


def test_each_page_says_where_the_feed_is(built: Build) -> None:
    for page in built.out.rglob("*.html"):
        head = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").head
        (link,) = head.select("link[type='application/atom+xml']")
        assert link["rel"] == ["alternate"] and link["title"] == "Release notes"
        path = urlsplit(link["href"]).path
        target = built.out / path.removeprefix("/fork/") if path.startswith("/") else page.parent / path
        assert target.resolve() == (built.out / FILE).resolve()


def test_a_title_that_is_mended_and_another_day_leave_the_ids(
    tmp_path: Path, feed: ElementTree.Element, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_SITE", SITE)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")
    mended = FILES | {"docs/about/release-notes.md": NOTES.replace(": The first", ": The very first")}
    again = ElementTree.parse(build(written(tmp_path, mended)).out / FILE).getroot()
    for name in ("id", "updated"):
        assert [e.text for e in again.iter(f"{ATOM}{name}")] == [e.text for e in feed.iter(f"{ATOM}{name}")]


def test_a_build_with_nothing_to_write_leaves_it_alone(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_SITE", SITE)
    before = (built.out / FILE).stat().st_mtime_ns
    again = build(built.site)
    assert again.code == 0, again.output
    assert (built.out / FILE).stat().st_mtime_ns == before


def test_a_site_without_release_notes_has_no_feed(tmp_path: Path) -> None:
    done = build(written(tmp_path, {"docs/text.md": "# Text\n\nText.\n"}))
    assert done.code == 0, done.output
    assert not (done.out / FILE).exists()
    assert "atom+xml" not in (done.out / "text.html").read_text()


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        (
            "2026-11: The first",
            "the heading of a release note is a day and a title, as in '2026-11-23: The first edition'",
        ),
        ("2026-13-01: The first", "the heading of a release note is a day and a title"),
        (
            "2026-12-24: The same day",
            "a release note is older than the one above it: join it with that of 2026-12-24",
        ),
        ("2027-01-01: Newer", "a release note is older than the one above it"),
    ],
)
def test_a_heading_that_makes_no_entry_is_refused(tmp_path: Path, heading: str, said: str) -> None:
    done = build(
        written(tmp_path, FILES | {"docs/about/release-notes.md": NOTES.replace("2026-11-23: The first", heading)})
    )
    assert done.code != 0
    assert re.search(rf"docs/about/release-notes\.md:13: ERROR: {re.escape(said)}", done.output), done.output[-1500:]
