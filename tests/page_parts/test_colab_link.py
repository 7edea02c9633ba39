"""'Open in Colab' stands on the pages of examples, if the sources are on GitHub; else there is no link."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

from atlas.page_parts.foot.colab_link import address

PageOf = Callable[[str, str], BeautifulSoup]
GITHUB = "https://github.com/someone/atlas"


def links(page_of: PageOf, repository: str, page: str) -> list[tuple[str, str]]:
    """Links to Colab: their words and where they lead."""
    found = page_of(repository, page).select('a[href*="colab"]')
    return [(link.get_text(), link["href"]) for link in found]


def test_an_example_opens_its_notebook(page_of: PageOf) -> None:
    notebook = "https://colab.research.google.com/github/someone/atlas/blob/notebooks/cuda/devices.ipynb"
    assert links(page_of, GITHUB, "gallery/cuda/devices") == [("Open in Colab", notebook)]


def test_it_stands_before_the_downloads(page_of: PageOf) -> None:
    downloads = page_of(GITHUB, "gallery/cuda/devices").select(".sphx-glr-footer .sphx-glr-download")
    assert [box.get_text().split()[0] for box in downloads] == ["Open", "Download", "Download", "Download"]


@pytest.mark.parametrize("repository", ["", "https://gitlab.com/someone/atlas"])
def test_without_github_no_link(page_of: PageOf, repository: str) -> None:
    assert links(page_of, repository, "gallery/cuda/devices") == []


def test_another_host_is_not_github() -> None:
    assert address("https://github.com.example/a/b", "gallery/cuda/devices") is None


@pytest.mark.parametrize("page", ["gallery/index", "gallery/cuda/index", "guide/which", "index"])
def test_a_page_without_a_notebook_has_no_link(page_of: PageOf, page: str) -> None:
    assert links(page_of, GITHUB, page) == []
