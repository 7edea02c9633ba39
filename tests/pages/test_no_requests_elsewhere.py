"""No page asks another site for anything: no script, style sheet, font or image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from pages.tiny_site import Build

LOADED = {
    "script": ["src"],
    "link": ["href"],
    "img": ["src", "srcset"],
    "source": ["src", "srcset"],
    "iframe": ["src"],
    "object": ["data"],
    "video": ["src", "poster"],
    "use": ["href"],
}
NOT_LOADED = {"canonical", "index", "search", "next", "prev", "author", "copyright"}
ELSEWHERE = re.compile(r"(?:^|[\s,(\"'])(?:https?:)?//\w")


@pytest.fixture(scope="module")
def pages(good: Build) -> dict[Path, BeautifulSoup]:
    return {path: BeautifulSoup(path.read_bytes(), "html.parser") for path in sorted(good.out.rglob("*.html"))}


def test_what_pages_load(pages: dict[Path, BeautifulSoup]) -> None:
    """Trap 9: Sphinx's own math loads MathJax from a CDN."""
    found = [
        (path.name, element.name, element[attribute])
        for path, page in pages.items()
        for name, attributes in LOADED.items()
        for element in page.find_all(name)
        for attribute in attributes
        if element.has_attr(attribute) and not NOT_LOADED & set(element.get("rel", []))
        if ELSEWHERE.search(element[attribute])
    ]
    assert not found


def test_what_styles_load(good: Build, pages: dict[Path, BeautifulSoup]) -> None:
    styles = [style.get_text() for page in pages.values() for style in page.find_all("style")]
    styles += [path.read_text(encoding="utf-8") for path in sorted((good.out / "_static").rglob("*.css"))]
    loads = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*")
    assert not [match[0] for style in styles for match in loads.finditer(style)]


def test_math_needs_no_script(pages: dict[Path, BeautifulSoup]) -> None:
    """Trap 9, again: the guide has formulas, and no page has a script for them."""
    scripts = [str(script) for page in pages.values() for script in page.find_all("script")]
    assert scripts and not [script for script in scripts if re.search("mathjax|katex", script, re.IGNORECASE)]


def test_no_page_of_execution_times(good: Build, pages: dict[Path, BeautifulSoup]) -> None:
    """Trap 14: sphinx-gallery's pages of execution times load jQuery and DataTables from two CDNs."""
    assert pages
    assert not [path for path in [*good.out.rglob("*"), *good.site.rglob("*.rst")] if "execution_times" in path.name]
