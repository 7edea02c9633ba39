"""Read the pages of the built site: parse each once, and find what the checks look at."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag

#: The attributes that hold an address, whatever element they are on.
ADDRESSES = ("href", "xlink:href", "src", "srcset", "poster", "data", "action", "formaction")

#: Of the page's own text: the mark of the site, and the pictures of cards, are decoration.
CARDS = ".card, .sd-card"
FIGURES = "svg[role=img], svg.graph, img:not(.card img, .sd-card img, .sidebar-brand img)"
OUTPUTS = ".sphx-glr-script-out pre, .output_html, .output_area pre"


@cache
def read(path: Path) -> BeautifulSoup:
    """The page as a tree."""
    tree = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    gc.freeze()  # it stays to the end: the collector would walk all trees again for every few new ones
    return tree


def read_notebook(site: Path, script: str) -> list[dict[str, Any]]:
    """The cells of the notebook that the script's page offers."""
    page = site / "gallery" / Path(script).with_suffix(".html")
    (link,) = [link for link in read(page).select("a.download") if link["href"].endswith(".ipynb")]
    return json.loads((page.parent / link["href"]).read_text(encoding="utf-8"))["cells"]


def text_of(element: Tag) -> str:
    """An element's text on one line, without the mark that links to a heading."""
    parts = [string for string in element.strings if "headerlink" not in string.parent.get("class", [])]
    return " ".join("".join(parts).split())


def addresses(page: BeautifulSoup) -> Iterator[tuple[Tag, str]]:
    """Each address that an element of the page names."""
    for element in page.find_all(True):
        for attribute in ADDRESSES:
            value = element.get(attribute)
            if value is None or (attribute == "data" and element.name != "object"):
                continue
            if attribute == "srcset":
                yield from ((element, candidate.split()[0]) for candidate in value.split(",") if candidate.strip())
            else:
                yield element, value.strip()


def code_cells(page: BeautifulSoup) -> list[Tag]:
    """The code of a page; outputs, what changes between two versions of a line, quotes and commands left out."""
    return [block for block in page.select("div.highlight > pre") if not block.find_parent(class_=_is_no_code)]


def _is_no_code(name: str | None) -> bool:
    return name in (
        "sphx-glr-script-out",
        "output_area",
        "output",
        "highlight-diff",
        "quoted-message",
        "install-line",
    )
