"""The order of chapters and pages."""

from __future__ import annotations

import itertools

from atlas.reading_order import CHAPTERS, page_order
from tiny.tiny_site import ROOT


def test_pages_come_in_the_order_of_their_chapter() -> None:
    for pages in CHAPTERS.values():
        files = [f"{page}.py" for page in pages]
        assert sorted(set(files), key=page_order) == files


def test_pages_that_are_not_named_come_last_by_name() -> None:
    named = next(iter(CHAPTERS.values()))[-1]
    assert sorted(["zebra.py", "aardvark.py", f"{named}.py"], key=page_order) == [
        f"{named}.py",
        "aardvark.py",
        "zebra.py",
    ]


def test_a_page_is_named_once() -> None:
    pages = list(itertools.chain(*CHAPTERS.values()))
    assert len(pages) == len(set(pages))


def test_what_is_named_is_there() -> None:
    """A name that no script has, or no longer, would be ignored without a word."""
    for chapter, pages in CHAPTERS.items():
        assert (ROOT / "examples" / chapter / "GALLERY_HEADER.rst").is_file()
        assert not [page for page in pages if not (ROOT / "examples" / chapter / f"{page}.py").is_file()]
