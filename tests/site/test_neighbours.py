"""A page's "See also" begins with the pages before and after it, in the order in which the chapters are read."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from atlas.reading_order import CHAPTERS

EXAMPLES = Path(__file__).parents[2] / "examples"

#: Someone who looks up a message reads no error page before it and none after.
PAGES = [f"{chapter}_{page}" for chapter, pages in CHAPTERS.items() if chapter != "errors" for page in pages]
NEIGHBOURS = {
    page: {"Before": before, "Next": after} for (before, page), (_, after) in pairwise(pairwise(["", *PAGES, ""]))
}


def named(source: str) -> dict[str, str]:
    """The neighbours that a page's source names: what it calls them, and the page that the link leads to."""
    see_also = source.rpartition("# See also\n")[2]
    return dict(
        re.findall(r"^# - (Before|Next): :ref:`(?:[^`<]*<)?sphx_glr_gallery_(\w+)\.py", see_also, re.MULTILINE)
    )


@pytest.mark.parametrize("name", PAGES)
def test_see_also_names_the_neighbours(name: str) -> None:
    chapter, _, page = name.partition("_")
    source = (EXAMPLES / chapter / f"{page}.py").read_text(encoding="utf-8")
    assert named(source) == {word: page for word, page in NEIGHBOURS[name].items() if page}


def test_a_wrong_neighbour_is_found() -> None:
    source = "# See also\n# --------\n# - Before: :ref:`words <sphx_glr_gallery_graphs_first_graph.py>`, and more.\n"
    assert named(source) == {"Before": "graphs_first_graph"}
    assert named(source.replace("Before", "Earlier")) == {}
