"""'Report a mistake' opens an issue about the page where the sources are; without sources there is neither link nor script."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup

from atlas.page_parts.foot.report_link import address

PageOf = Callable[[str, str], BeautifulSoup]
GITHUB = "https://github.com/someone/atlas"


@pytest.mark.parametrize("name", ["gallery/cuda/devices", "guide/which", "index"])
def test_it_names_the_page_and_the_pytorch(page_of: PageOf, name: str) -> None:
    page = page_of(GITHUB, name)
    (link,) = page.select(".report a")
    parts = urlsplit(link["href"])
    said = parse_qs(parts.query)
    assert parts._replace(query="").geturl() == f"{GITHUB}/issues/new"
    assert said["title"] == [page.h1.find(string=True)]
    where = page.select_one("link[rel=canonical]")["href"]
    torch = version("torch").partition("+")[0]
    assert said["body"] == [f"Page: {where}\nPyTorch: {torch}\n\nWhat is wrong:\n\n"]
    assert link["data-page"] == where
    assert len(page.select('script[src*="report.js"]')) == 1


@pytest.mark.parametrize("name", ["gallery/cuda/devices", "index"])
def test_without_sources_there_is_none(page_of: PageOf, name: str) -> None:
    page = page_of("", name)
    assert not page.select('.report, script[src*="report.js"]')


@pytest.mark.parametrize("name", ["404", "genindex"])
def test_a_page_without_a_source_has_none(page_of: PageOf, name: str) -> None:
    assert not page_of(GITHUB, name).select(".report")


def test_gitlab_has_other_names_for_the_fields() -> None:
    found = parse_qs(urlsplit(address("https://gitlab.example/a/b", "T & U", "x\ny")).query)
    assert found == {"issue[title]": ["T & U"], "issue[description]": ["x\ny"]}
