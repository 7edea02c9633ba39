"""The small picture of a figure has what can be seen at its size, and weighs little."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest

from atlas.figures import draw_plot_picture
from graphs.draw import HEIGHT, WIDTH, draw_graph, draw_picture
from graphs.model import Card, Edge, Graph


def leaf(key: int, name: str) -> Card:
    return Card(key, "leaf", names=(name,), shape=(), value=1.0)


def function(key: int, name: str = "", *, is_root: bool = False) -> Card:
    return Card(key, "function", "MulBackward0", (name,) if name else (), is_root, shape=(), value=2.0)


def chain(*cards: Card) -> Graph:
    return Graph(cards, tuple(Edge(one.key, other.key, derivative=3.0) for one, other in pairwise(cards)))


def names(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def boxes(picture: str) -> list[tuple[float, float, float, float]]:
    found = [re.findall(r'(?: x| y|width|height)="([-\d.]+)"', rect) for rect in re.findall(r"<rect[^>]*>", picture)]
    return [tuple(map(float, sides)) for sides in found]


def inside(picture: str) -> bool:
    return all(x >= 0 and y >= 0 and x + w <= WIDTH and y + h <= HEIGHT for x, y, w, h in boxes(picture))


def test_a_graph_that_stands_upright_lies_in_its_picture() -> None:
    graph = chain(leaf(0, "x"), *(function(n) for n in range(1, 15)), function(15, "w", is_root=True))
    assert "graph-upright" in draw_graph(graph)
    across = [x for x, *_ in boxes(draw_picture(graph))]
    assert across == sorted(across) and across[-1] > WIDTH * 0.8


def test_a_small_graph_keeps_its_names_and_nothing_else() -> None:
    found = draw_picture(chain(leaf(0, "x1"), function(1, "w < 2", is_root=True)))
    assert names(found) == ["x1", "w &lt; 2"]
    assert "MulBackward0" not in found and "×" not in found and inside(found)
    ElementTree.fromstring(found)


def test_where_there_is_no_room_leaves_and_roots_keep_theirs() -> None:
    row = [function(n, f"state_{n}") for n in range(1, 4)]
    found = draw_picture(chain(leaf(0, "x"), *row, function(4, "loss", is_root=True)))
    assert names(found) == ["x", "loss"] and inside(found)


@pytest.mark.parametrize("length", [8, 30])
def test_a_crowd_has_no_names(length: int) -> None:
    found = draw_picture(chain(*(leaf(n, "a_long_name") for n in range(length))))
    assert not names(found) and len(boxes(found)) == length and inside(found)


def test_an_edge_never_runs_backward_where_a_name_is_kept() -> None:
    cards = (
        leaf(0, "x"),
        function(1, "state"),
        function(2, "a_captured_result", is_root=True),
        function(3, "s", is_root=True),
    )
    found = draw_picture(Graph(cards, (Edge(0, 1), Edge(1, 2), Edge(1, 3))))
    starts = [float(x) for x in re.findall(r'<path d="M([-\d.]+),', found)]
    ends = [float(x) for x in re.findall(r'<polygon points="([-\d.]+),', found)]
    assert all(start < end for start, end in zip(starts, ends, strict=True))


@pytest.fixture
def plot(tmp_path) -> str:
    figure, axes = plt.subplots()
    axes.plot(range(300), [n % 7 for n in range(300)], color="#2563eb", label="a line", marker="o")
    axes.set_title("A title")
    axes.legend()
    figure.savefig(tmp_path / "plot.svg")
    plt.close(figure)
    return (tmp_path / "plot.svg").read_text(encoding="utf-8")


def test_a_plot_has_its_line_and_no_word(plot: str) -> None:
    found = draw_plot_picture(plot)
    ElementTree.fromstring(found)
    assert "DejaVu" in plot and "DejaVu" not in found and " id=" not in found
    assert found.count("<path") == 6  # the line, its marks, the frame's four sides
    assert "var(--plot-2563eb,#2563eb)" in found and len(found) < len(plot) / 5


def test_numbers_are_whole(plot: str) -> None:
    outlines = re.findall(r' d="([^"]*)"', draw_plot_picture(plot))
    assert outlines and not [outline for outline in outlines if "." in outline]


def test_a_bitmap_stays(tmp_path) -> None:
    figure, axes = plt.subplots()
    axes.imshow([[0, 1], [1, 0]])
    figure.savefig(tmp_path / "map.svg")
    plt.close(figure)
    found = draw_plot_picture((tmp_path / "map.svg").read_text(encoding="utf-8"))
    (address,) = re.findall(r'<image href="([^"]*)"', found)
    assert address.startswith("data:image/png;base64,") and not re.search(r"\s", address)
    ElementTree.fromstring(found)
