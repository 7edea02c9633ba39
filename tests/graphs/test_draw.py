"""``draw_graph`` draws an element SVG: what the cards say, how they are marked, and that all of it fits."""

from __future__ import annotations

import random
import re
import runpy
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from svg import Drawing, turned_upright

import drawgrad
from drawgrad.drawing import HEIGHT, WIDTH, draw_graph, draw_picture
from drawgrad.model import Card, Edge, Graph

EVERY_KIND = Graph(
    (
        Card(0, "leaf", names=("x", "same"), shape=(), value=3.0, gradient=-1.5, terms=(0.5, -2.0)),
        Card(1, "leaf", names=("net.weight",), shape=(3, 4), dtype="float32", gradient_shape=(3, 4)),
        Card(2, "accumulate", "AccumulateGrad", shape=(), dtype="float32"),
        Card(3, "constant", "constant"),
        Card(4, "function", "MmBackward0", shape=(3, 2), dtype="float64", saved=("mat2 (4×2)", "self (3×4)")),
        Card(5, "folded", "7 nodes: SinBackward0 ×7"),
        Card(6, "function", "UnbindBackward0", names=("a", "b")),
        Card(7, "function", "MulBackward0", ("y",), True, (), "float32", 0.25285, saved=("other (scalar)",)),
    ),
    (
        *(Edge(0, 2), Edge(2, 7, 0, derivative=-2.0), Edge(1, 4, 0), Edge(3, 4, 1), Edge(4, 5), Edge(5, 6)),
        *(Edge(6, 7, 1, 1, derivative=0.5), Edge(6, 7, 2, 0)),
    ),
)


#: Narrow enough to be drawn from left to right.
SUM = Graph(
    (
        Card(0, "leaf", names=("a",), shape=(), value=2.0),
        Card(1, "leaf", names=("b",), shape=(), value=3.0),
        Card(2, "function", "MulBackward0", shape=(), value=6.0),
        Card(3, "function", "AddBackward0", names=("y",), is_root=True, shape=(), value=8.0),
    ),
    (Edge(0, 2, derivative=3.0), Edge(1, 2, derivative=2.0), Edge(2, 3, derivative=1.0), Edge(0, 3, derivative=1.0)),
)


@pytest.fixture(scope="module")
def drawing() -> Drawing:
    return Drawing(draw_graph(EVERY_KIND))


def only(card: Card, **options: bool) -> list[tuple[str, str]]:
    """What the drawing of this card alone says."""
    return Drawing(draw_graph(Graph((card,), ()), **options)).texts(card.key)


# --- what the cards say --------------------------------------------------------------------------


def test_every_card_says_what_is_known_about_it(drawing):
    assert {key: [text for _class, text in drawing.texts(key)] for key in drawing.cards} == {
        0: ["x, same", "leaf", "3", "grad −1.5000", "= 0.5000 + (−2)"],
        1: ["net.weight", "leaf", "3×4 float32", "grad 3×4"],
        2: ["AccumulateGrad"],
        3: ["constant"],
        4: ["MmBackward0", "3×2 float64", "saved: mat2 (4×2)", "saved: self (3×4)"],
        5: ["7 nodes: SinBackward0 ×7"],
        6: ["a, b", "UnbindBackward0"],
        7: ["y", "root · MulBackward0", "0.2529"],
    }


def test_each_card_has_the_class_of_its_kind(drawing):
    kinds = ["leaf", "leaf", "accumulate", "constant", "function", "folded", "function", "root"]
    assert [drawing.classes(key) for key in range(8)] == [{"g-card", f"g-{kind}"} for kind in kinds]


def test_what_a_scalar_saved_is_written_when_asked_for():
    scalar = Card(0, "function", "F", shape=(), saved=("self (scalar)",))
    assert only(scalar) == [("g-operation", "F")]
    assert only(scalar, show_saved=True) == [("g-operation", "F"), ("g-small", "saved: self (scalar)")]


def test_many_terms_are_counted():
    card = Card(0, "leaf", names=("x",), shape=(), gradient=5.0, terms=(1.0,) * 5)
    assert ("g-small g-gradient", "= sum over 5 edges") in only(card)


def test_a_long_line_is_cut():
    ((_role, text),) = only(Card(0, "function", "F" * 400))
    assert re.fullmatch(r"F+…", text)
    assert len(text) < 60


@pytest.mark.parametrize("name", ["<b>", "a & b", 'd["key"]', "d['key']", "</text>", "&lt;", "]]>"])
def test_names_are_escaped(name):
    graph = Graph((Card(0, "function", f"{name}Backward", names=(name,), saved=(name,), shape=(1,)),), ())
    said = [text for _class, text in Drawing(draw_graph(graph)).texts(0)]
    assert (said[0], said[1], said[-1]) == (name, f"{name}Backward", f"saved: {name}")


# --- edges ---------------------------------------------------------------------------------------


def test_every_edge_is_drawn_with_its_derivative_and_output(drawing):
    ends = [(edge.get("data-from"), edge.get("data-to")) for edge in drawing.edges]
    assert ends == [(str(edge.tail), str(edge.head)) for edge in EVERY_KIND.edges]
    assert drawing.labels() == [((2, 7), "× −2"), ((6, 7), "out 1 × 0.5000")]


@pytest.mark.parametrize(
    ("graph", "svg"),
    [(SUM, turned_upright(draw_graph(SUM))), (EVERY_KIND, draw_graph(EVERY_KIND))],
    ids=["on a phone", "too wide for a page"],
)
def test_data_flows_down_where_there_is_little_room(graph, svg):
    drawing = Drawing(svg)
    boxes = drawing.boxes()
    assert all(boxes[edge.tail].bottom < boxes[edge.head].top for edge in graph.edges)
    assert drawing.area.right < Drawing(draw_graph(SUM)).area.right + 100


def test_an_edge_begins_at_its_tail_and_points_at_its_head():
    drawing = Drawing(draw_graph(SUM))
    boxes = drawing.boxes()
    for edge, group in zip(SUM.edges, drawing.edges, strict=True):
        x, y, *_ = (float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", group.find("{*}path").get("d")))
        tip = [float(number) for number in group.find("{*}polygon").get("points").split()[0].split(",")]
        for (at, height), side, box in (((x, y), "right", boxes[edge.tail]), (tip, "left", boxes[edge.head])):
            assert at == pytest.approx(getattr(box, side), abs=1.5)
            assert box.top - 1.5 <= height <= box.bottom + 1.5


# --- that all of it fits -------------------------------------------------------------------------


def crowded() -> Graph:
    """Layers of cards of every width, each joined to most of the next."""
    chance = random.Random(0)
    cards, edges, layers = [], [], []
    for depth in range(5):
        layer = []
        for _row in range(6):
            key = len(cards)
            names = ("n" * chance.randrange(1, 60),) if chance.random() < 0.7 else ()
            kind = ("function", "F" * chance.randrange(1, 30), names, depth == 4, (), "float32")
            cards.append(Card(key, *kind, chance.uniform(-1e5, 1e5), chance.uniform(-1, 1)))
            layer.append(key)
        layers.append(layer)
    for here, there in pairwise(layers):
        edges += [
            Edge(tail, head, tail % 6, chance.randrange(3), chance.uniform(-1e3, 1e3))
            for tail in here
            for head in there
            if chance.random() < 0.6
        ]
    return Graph(tuple(cards), tuple(edges), left_out=1234)


def side_by_side() -> Graph:
    """Many edges between the same two cards."""
    cards = (Card(0, "function", "U", names=("parts",)), Card(1, "function", "S", names=("s",), is_root=True))
    return Graph(cards, tuple(Edge(0, 1, number, number, number / 7) for number in range(12)))


@pytest.mark.parametrize(
    "graph",
    [EVERY_KIND, SUM, crowded(), side_by_side(), Graph((Card(0, "leaf", names=("x",)),), ())],
    ids=["every kind", "sum", "crowded", "side by side", "one card"],
)
@pytest.mark.parametrize("shown", [str, turned_upright], ids=["as drawn", "on a phone"])
def test_no_text_leaves_its_card_and_nothing_overlaps(graph, shown):
    drawing = Drawing(shown(draw_graph(graph, show_saved=True)))
    assert len(drawing.cards) == len(graph.cards)
    assert len(drawing.edges) == len(graph.edges)
    assert drawing.faults() == []


def test_what_was_left_out_is_said_under_the_drawing():
    drawing = Drawing(draw_graph(Graph(EVERY_KIND.cards, EVERY_KIND.edges, left_out=7)))
    ((_key, text, area),) = [item for item in drawing.written() if "more" in item[1]]
    assert text == "… 7 more"
    assert area.top > max(box.bottom for box in drawing.boxes().values())
    assert "more" not in draw_graph(EVERY_KIND)


def test_a_drawing_wider_than_a_page_stands_upright_and_one_that_is_wide_then_too_is_marked():
    def long(length: int) -> Graph:
        return Graph(
            tuple(Card(key, "function", f"Function{key}") for key in range(length)),
            tuple(Edge(key, key + 1) for key in range(length - 1)),
        )

    drawn = [Drawing(draw_graph(graph)).root for graph in (long(3), long(30), crowded())]
    assert [root.get("class") for root in drawn] == ["graph", "graph graph-upright", "graph graph-wide"]
    assert "data-upright" not in drawn[1].attrib, "it stands upright everywhere"


# --- the element ---------------------------------------------------------------------------------


def test_every_colour_is_a_class():
    svg = draw_graph(Graph(EVERY_KIND.cards[:2], ()))
    assert not re.search(r"fill|stroke|style=|#[0-9a-fA-F]{3}", svg)


ROLES = "name operation small gradient card leaf root accumulate folded constant edge dotted"


@pytest.mark.parametrize("role", ROLES.split())
def test_the_style_has_a_rule_for_each_role(role):
    style = Path(drawgrad.__file__).with_name("web").joinpath("graph.css").read_text(encoding="utf-8")
    assert re.search(rf"\.g-{role}\b[^}}]*{{", style)


def test_a_missing_library_of_graphviz_is_named_with_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(ImportError, match=r"pygraphviz.*apt-get install libglib2\.0-0"):
        runpy.run_path(str(Path(drawgrad.__file__).with_name("drawing.py")))


# --- the small picture ---------------------------------------------------------------------------


def follow_names(*names: str, pairs: tuple[tuple[int, int], ...] = ()) -> Graph:
    """A leaf, and functions that follow one another, or are joined as ``pairs`` says; the last is a root."""
    cards = [Card(0, "leaf", names=(names[0],), shape=(), value=1.0)]
    for key, name in enumerate(names[1:], 1):
        named = (name,) if name else ()
        cards.append(Card(key, "function", "MulBackward0", named, key == len(names) - 1, (), value=2.0))
    return Graph(tuple(cards), tuple(Edge(*pair, derivative=3.0) for pair in pairs or pairwise(range(len(names)))))


def read_picture(graph: Graph) -> tuple[list[str], list[float]]:
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
    graph = follow_names("x", *[""] * 14, "w")
    assert "graph-upright" in draw_graph(graph)
    _names, across = read_picture(graph)
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
    assert read_picture(follow_names(*names))[0] == kept


def test_an_edge_never_runs_backward_where_a_name_is_kept() -> None:
    assert read_picture(follow_names("x", "state", "a_captured_result", "s", pairs=((0, 1), (1, 2), (1, 3))))[0]
