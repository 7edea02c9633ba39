"""Each card of a graph figure knows the line of the page that made it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document

from atlas.directives.figures.graph_code import _numbers, tie, with_code

Page = Callable[[str], BeautifulSoup]

CELL = """\

x = 1
# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    y = x
    # Why it is so
    # sphinx_gallery_start_ignore
except ValueError:
    pass
# sphinx_gallery_end_ignore
# sphinx_gallery_thumbnail_number = 2

# graph: y -- Title
#   that goes on

z = (
    y
)"""


def lines_of(page: BeautifulSoup) -> list[dict[str, list[str]]]:
    """For each figure, by the name of the card, the lines of its statement as they stand on the page."""
    found = []
    for figure in page.select("figure.graph-figure"):
        said = figure.find("script", recursive=False)
        notes = json.loads(figure.div.find("script").string)["cards"]
        made = json.loads(said.string)["made_by"] if said else {}
        found.append({notes[key][0][1]: _lines(page, *place) for key, place in made.items()})
    return found


def _lines(page: BeautifulSoup, block: str, first: int, last: int) -> list[str]:
    return page.find(id=block).pre.get_text().split("\n")[first - 1 : last]


def test_each_card_has_its_line(page: Page) -> None:
    first, second = lines_of(page("graph_of_a_product"))
    assert first == {
        "w": ["w = torch.tensor(2.0, requires_grad=True)"],
        "x": ["x = torch.tensor(3.0, requires_grad=True)"],
        "y": ["y = w * x"],
    }
    assert second == first, "a figure further down on the page"


def test_a_figure_on_a_page_without_its_code_has_none(page: Page) -> None:
    assert lines_of(page("guide")) == [{}]


def test_lines_are_counted_as_they_stand_on_the_page() -> None:
    shown = "x = 1\ny = x\n# Why it is so\n\nz = (\n    y\n)"
    assert _numbers(CELL, 30, shown) == [31, 35, 0, 0, 46, 47, 48]


@pytest.mark.parametrize("shown", ["x = 2", "x = 1", ""])
def test_a_block_that_shows_something_else_has_no_numbers(shown: str) -> None:
    assert _numbers(CELL, 30, shown) == []


@pytest.mark.parametrize(
    ("code", "lit"),
    [
        (["x = 1\ny = x"], ["cell-1", 2, 2]),
        ([">>> x = 1\n>>> y = x\n>>> z = y"], ["cell-1", 2, 2]),
        (["y = x", "print(y)\ny = x"], None),
        (["z = y = x"], None),
    ],
)
def test_on_another_page_a_line_counts_if_it_is_said_once(code: list[str], lit: list[str | int] | None) -> None:
    drawing = with_code(
        nodes.raw("", "<svg/>"), {"cards": {"4": {"line": "y = x", "at": [30, 30]}, "5": {"name": "z"}}}
    )
    blocks = [nodes.literal_block(text, text) for text in code]
    document = new_document("index")
    document += [*blocks, nodes.figure("", drawing)]
    env = SimpleNamespace(docname="index", doc2path=lambda name: f"/nowhere/{name}.md")
    tie(SimpleNamespace(env=env), document)
    written = [raw.astext() for raw in document.findall(nodes.raw) if "made_by" in raw.astext()]
    assert [json.loads(BeautifulSoup(html, "html.parser").script.string)["made_by"] for html in written] == (
        [{"4": lit}] if lit else []
    )
    assert [block["ids"] for block in blocks] == ([["cell-1"]] if lit else [[] for _ in blocks])
