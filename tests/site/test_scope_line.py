"""The pages that teach say at their foot what their sentences are about; the page that they name says it whole."""

from __future__ import annotations

from pathlib import Path

from atlas.footer import SCOPE_PAGE as PAGE
from atlas.footer import SCOPE_SECTION as SECTION
from markup import read


def scope_links(site: Path, page: str) -> list[str]:
    links = (link for line in read(site / f"{page}.html").select("footer .built") for link in line.select("a[href]"))
    return [link["href"] for link in links if link["href"].endswith(f"#{SECTION}")]


def test_examples_and_guide_pages_say_it(site: Path) -> None:
    assert scope_links(site, "gallery/graphs/first_graph") == [f"../../{PAGE}.html#{SECTION}"]
    assert scope_links(site, "guide/which-switch") == [f"../{PAGE}.html#{SECTION}"]


def test_lists_and_the_reference_do_not(site: Path) -> None:
    assert [
        page for page in ("gallery/graphs/index", "reference/glossary", "index", PAGE) if scope_links(site, page)
    ] == []


def test_the_section_is_there(site: Path) -> None:
    assert read(site / f"{PAGE}.html").select_one(f"section#{SECTION} li")
