"""The sidebar of each page is what the theme would have made for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from atlas.upstream.furo_939_sidebar import for_page
from markup import read
from sources import GENERATED

TREE = """<ul>
<li class="toctree-l1"><a class="reference internal" href="guide/a.html">A <code>b</code></a></li>
<li class="toctree-l1 has-children"><a class="reference internal" href="graphs/index.html">Graphs</a><input aria-label="Toggle \
navigation of Graphs" class="toctree-checkbox" id="toctree-checkbox-1"/><ul>
<li class="toctree-l2"><a class="reference internal" href="graphs/one.html">One</a></li>
</ul>
</li>
</ul>"""


def entries(tree: str) -> list[tuple[str, str, bool]]:
    """Of each entry its address, its marks, and whether it is open."""
    return [_entry(item) for item in BeautifulSoup(tree, "html.parser").select("li")]


def _entry(item: Tag) -> tuple[str, str, bool]:
    box = item.find("input", recursive=False)
    marks = " ".join(mark for mark in item["class"] if mark.startswith("current"))
    return item.a["href"], marks, box is not None and box.has_attr("checked")


def test_a_page_of_a_chapter() -> None:
    assert entries(for_page(TREE, "graphs/one.html", ["graphs/one.html", "graphs/index.html", "index.html"])) == [
        ("../guide/a.html", "", False),
        ("index.html", "current", True),
        ("#", "current current-page", False),
    ]


def test_the_page_of_a_chapter() -> None:
    assert entries(for_page(TREE, "graphs/index.html", ["graphs/index.html", "index.html"])) == [
        ("../guide/a.html", "", False),
        ("#", "current current-page", True),
        ("one.html", "", False),
    ]


def test_a_page_that_is_in_no_toctree() -> None:
    assert [entry[1:] for entry in entries(for_page(TREE, "search.html", ["search.html"]))] == [("", False)] * 3


@pytest.mark.parametrize(
    "name", ["index.html", "guide/which-switch.html", "gallery/memory/index.html", "search.html"]
)
def test_every_link_leads_to_its_page(site: Path, name: str, all_pages: list[str]) -> None:
    """The built site: all pages from any of them, and one that is current, if the sidebar has it."""
    links = [link["href"] for link in read(site / name).select(".sidebar-tree a")]
    led_to = {
        (site / name).parent.joinpath(link).resolve().relative_to(site).as_posix() for link in links if link != "#"
    }
    current = links.count("#")
    assert current == (name not in ("index.html", "search.html"))
    in_sidebar = set(all_pages) - GENERATED - {"index.html", "gallery/index.html"}
    assert led_to | ({name} if current else set()) == in_sidebar


def test_the_chapter_of_a_page_is_open(site: Path) -> None:
    text = (site / "gallery/memory/checkpointing.html").read_text()
    opened = re.findall(r'<input aria-label="Toggle navigation of ([^"]*)" checked=""', text)
    assert opened == ["Memory"]
