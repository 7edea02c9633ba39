"""The small picture of a graph has what can be seen at its size."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from graphs.draw import HEIGHT, WIDTH, draw_graph, draw_picture
from graphs.model import Card, Edge, Graph


def row(*names: str, pairs: tuple[tuple[int, int], ...] = ()) -> Graph:
    """A leaf, and functions that follow one another, or are joined as ``pairs`` says; the last is a root."""
    cards = [Card(0, "leaf", names=(names[0],), shape=(), value=1.0)]
    for key, name in enumerate(names[1:], 1):
        named = (name,) if name else ()
        cards.append(Card(key, "function", "MulBackward0", named, key == len(names) - 1, (), value=2.0))
    return Graph(tuple(cards), tuple(Edge(*pair, derivative=3.0) for pair in pairs or pairwise(range(len(names)))))


def draw(graph: Graph) -> tuple[list[str], list[float]]:
    """The names in the picture, and where its boxes begin; none of them may stick out."""
    picture = draw_picture(graph)
    ElementTree.fromstring(picture)
    assert "MulBackward0" not in picture and "×" not in picture
    found = [re.findall(r'(?: x| y|width|height)="([-\d.]+)"', rect) for rect in re.findall(r"<rect[^>]*>", picture)]
    boxes = [tuple(map(float, sides)) for sides in found]
    assert len(boxes) == len(graph.cards)
    assert all(x >= 0 and y >= 0 and x + w <= WIDTH and y + h <= HEIGHT for x, y, w, h in boxes)
    starts = [float(x) for x in re.findall(r'<path d="M([-\d.]+),', picture)]
    ends = [float(x) for x in re.findall(r'<polygon points="([-\d.]+),', picture)]
    names = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert not names or all(start < end for start, end in zip(starts, ends, strict=True)), "an edge runs backward"
    return names, [x for x, *_ in boxes]


def test_a_graph_that_stands_upright_lies_in_its_picture() -> None:
    graph = row("x", *[""] * 14, "w")
    assert "graph-upright" in draw_graph(graph)
    _names, across = draw(graph)
    assert across == sorted(across) and across[-1] > WIDTH * 0.8


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["x1", "w < 2"], ["x1", "w &lt; 2"]),
        (["x", "state_1", "state_2", "state_3", "loss"], ["x", "loss"]),
        (["a_long_name"] * 8, []),
        (["a_long_name"] * 30, []),
    ],
    ids=["a small graph", "no room for all", "a crowd", "a large crowd"],
)
def test_names_stay_as_long_as_there_is_room(names: list[str], kept: list[str]) -> None:
    assert draw(row(*names))[0] == kept


def test_an_edge_never_runs_backward_where_a_name_is_kept() -> None:
    assert draw(row("x", "state", "a_captured_result", "s", pairs=((0, 1), (1, 2), (1, 3))))[0]
