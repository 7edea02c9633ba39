"""Bugs of libraries that are worked around show in no page. Where a library is newer, try the page without the workaround."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import build, written

TABLE = "# Table\n\n```{table}\n:widths: 25 75\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n```\n"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> BeautifulSoup:
    built = build(written(tmp_path_factory.mktemp("site"), {"docs/table.md": TABLE}))
    assert built.code == 0, built.output
    return BeautifulSoup((built.out / "table.html").read_text(encoding="utf-8"), "html.parser")


def test_a_first_build_finds_mystnb_css_when_it_writes_pages(page: BeautifulSoup) -> None:
    """Then the sheet is a part of the site's one. Else it has a link of its own."""
    assert not page.select('link[href*="mystnb."]')


def test_a_table_has_the_widths_that_it_was_given(page: BeautifulSoup) -> None:
    assert len(page.select("article table col[style*=width]")) == 2
