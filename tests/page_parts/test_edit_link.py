"""'Edit this page' leads to a file of the repository, for an example to its script."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

PageOf = Callable[[str, str], BeautifulSoup]
SOURCES = "https://github.com/someone/atlas"


def links(page_of: PageOf, repository: str, page: str) -> set[str]:
    """Where the theme's links to the source of the page lead."""
    return {link["href"] for link in page_of(repository, page).select(".edit-this-page a, .view-this-page a")}


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("gallery/cuda/devices", "examples/cuda/devices.py"),
        ("gallery/cuda/index", "examples/cuda/GALLERY_HEADER.rst"),
        ("gallery/index", "examples/GALLERY_HEADER.rst"),
        ("guide/which", "docs/guide/which.md"),
        ("index", "docs/index.md"),
    ],
)
def test_it_leads_to_the_source(page_of: PageOf, page: str, source: str) -> None:
    assert f"{SOURCES}/edit/main/{source}" in links(page_of, SOURCES, page)
    assert {link.partition("/main/")[2].partition("?")[0] for link in links(page_of, SOURCES, page)} == {source}


@pytest.mark.parametrize("page", ["gallery/cuda/devices", "guide/which"])
def test_no_repository_no_link(page_of: PageOf, page: str) -> None:
    assert links(page_of, "", page) == set()
