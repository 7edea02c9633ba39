"""What ``conf/templates/page.html`` replaces in furo's HTML is there to be replaced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

Page = Callable[[str], BeautifulSoup]


@pytest.mark.parametrize(("part", "name"), [("sidebar-drawer", "Pages of this site"), ("toc-drawer", "On this page")])
@pytest.mark.parametrize("at", ["guide", "index"])
def test_the_two_side_bars_have_names(page: Page, part: str, name: str, at: str) -> None:
    (bar,) = page(at).select(f"aside.{part}")
    assert bar["aria-label"] == name


def test_the_links_to_the_source_are_in_a_landmark(page_of: Callable[[str, str], BeautifulSoup]) -> None:
    (box,) = page_of("https://github.com/someone/atlas", "guide/which").select(".content-icon-container")
    assert (box["role"], box["aria-label"]) == ("region", "About this page")
    assert box.select(".edit-this-page")
