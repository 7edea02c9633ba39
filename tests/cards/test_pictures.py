"""The small picture of a figure has what can be seen at its size, and weighs little."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest

from atlas import graph_picture, plot_picture
from atlas.graph_picture import HEIGHT, WIDTH


def card(number: int, name: str, x: float, y: float, kind: str = "function") -> str:
    """A card as ``atlas.graphs.drawing.draw`` writes it."""
    text = f'<text class="g-name" x="1" y="1" font-size="14">{name}</text>' if name else ""
    return (
        f'<g class="g-card g-{kind}" data-card="{number}" data-upright="translate(1 2)">'
        f'<rect x="{x}" y="{y}" width="100" height="47" rx="7"/>{text}'
        '<text class="g-operation" x="1" y="1" font-size="11">MulBackward0</text></g>'
    )


def edge(number: int, start: int, end: int) -> str:
    return (
        f'<g class="g-edge" data-edge="{number}" data-from="{start}" data-to="{end}"><path d="M0,0"/>'
        '<text class="g-gradient">× 3</text></g>'
    )


def drawing(*parts: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="graph">{"".join(parts)}</svg>'


def names(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def boxes(picture: str) -> list[tuple[float, float, float, float]]:
    found = [re.findall(r'(?: x| y|width|height)="([-\d.]+)"', rect) for rect in re.findall(r"<rect[^>]*>", picture)]
    return [tuple(map(float, sides)) for sides in found]


def inside(picture: str) -> bool:
    return all(x >= 0 and y >= 0 and x + w <= WIDTH and y + h <= HEIGHT for x, y, w, h in boxes(picture))


def test_a_graph_that_stands_upright_lies_in_its_picture() -> None:
    parts = edge(0, 0, 1), card(0, "x1", 0, 0, "leaf"), card(1, "w", 0, 400, "root")
    lying = graph_picture.picture(drawing(edge(0, 0, 1), card(0, "x1", 0, 0, "leaf"), card(1, "w", 400, 0, "root")))
    upright = drawing(*parts).replace('class="graph"', 'class="graph graph-upright"')
    assert [x for x, *_ in boxes(graph_picture.picture(upright))] == [x for x, *_ in boxes(lying)]


def test_a_small_graph_keeps_its_names_and_nothing_else() -> None:
    found = graph_picture.picture(
        drawing(edge(0, 0, 1), card(0, "x1", 0, 0, "leaf"), card(1, "w &lt; 2", 400, 200, "root"))
    )
    assert names(found) == ["x1", "w &lt; 2"]
    assert "MulBackward0" not in found and "×" not in found and inside(found)
    ElementTree.fromstring(found)


def test_where_there_is_no_room_leaves_and_roots_keep_theirs() -> None:
    row = [card(n, f"state_{n}", 130 * n, 80) for n in range(1, 4)]
    found = graph_picture.picture(drawing(card(0, "x", 0, 0, "leaf"), *row, card(4, "loss", 520, 160, "root")))
    assert names(found) == ["x", "loss"] and inside(found)


def test_a_wide_card_beside_the_last_column_stays_inside() -> None:
    cards = card(0, "x", 0, 0, "leaf"), card(1, "a_name_of_much_room", 395, 0), card(2, "y", 400, 200, "root")
    found = graph_picture.picture(drawing(*cards))
    assert len(names(found)) == 3 and inside(found)


@pytest.mark.parametrize("length", [8, 30])
def test_a_crowd_has_no_names(length: int) -> None:
    cards = [card(n, "a_long_name", 120 * n, 0, "leaf") for n in range(length)]
    found = graph_picture.picture(drawing(*cards))
    assert not names(found) and len(boxes(found)) == length and inside(found)


def test_an_edge_never_runs_backward_where_a_name_is_kept() -> None:
    long = "a_captured_result"
    found = graph_picture.picture(
        drawing(edge(0, 0, 1), card(0, "state", 300, 0), card(1, long, 420, 90, "root"), card(2, "x", 0, 0, "leaf"))
    )
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
    found = plot_picture.picture(plot)
    ElementTree.fromstring(found)
    assert "DejaVu" in plot and "DejaVu" not in found and " id=" not in found
    assert found.count("<path") == 6  # the line, its marks, the frame's four sides
    assert "var(--plot-2563eb,#2563eb)" in found and len(found) < len(plot) / 5


def test_numbers_are_whole(plot: str) -> None:
    outlines = re.findall(r' d="([^"]*)"', plot_picture.picture(plot))
    assert outlines and not [outline for outline in outlines if "." in outline]


def test_a_bitmap_stays(tmp_path) -> None:
    figure, axes = plt.subplots()
    axes.imshow([[0, 1], [1, 0]])
    figure.savefig(tmp_path / "map.svg")
    plt.close(figure)
    found = plot_picture.picture((tmp_path / "map.svg").read_text(encoding="utf-8"))
    (address,) = re.findall(r'<image href="([^"]*)"', found)
    assert address.startswith("data:image/png;base64,") and not re.search(r"\s", address)
    ElementTree.fromstring(found)
