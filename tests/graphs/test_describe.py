"""``describe`` says in rows what the drawing shows: one row a card, in the order of the forward pass."""

from __future__ import annotations

from shorthand import first_graph, graph_of

from drawgrad.describe import describe_graph
from drawgrad.model import Card, Edge, Graph


def rows(*cards: Card, edges: tuple[Edge, ...] = ()) -> list[tuple[str, ...]]:
    return describe_graph(Graph(cards, edges))


def test_first_graph():
    first = first_graph()
    first["w"].backward(retain_graph=True)
    found = {name: tuple(cells) for name, *cells in describe_graph(graph_of("w", **first))}
    assert found == {
        "x1": ("leaf", "2", "0.0706", "a × 3"),
        "x2": ("leaf", "3", "−1.7268 = −1.7738 + 0.0470", "a × 2, y2 × −0.9900"),
        "a": ("MulBackward0", "6", "", "y1 × 0.1667"),
        "y1": ("LogBackward0", "1.7918", "", "w × 0.1411"),
        "y2": ("SinBackward0", "0.1411", "", "w × 1.7918"),
        "w": ("root · MulBackward0", "0.2529", "", ""),
    }


def test_cards_of_one_kind_are_numbered_and_edges_lead_to_the_right_one():
    same = [Card(key, "function", "SinBackward0") for key in range(3)]
    found = rows(*same, Card(3, "function", "Add", names=("y",)), edges=(Edge(0, 1), Edge(1, 2), Edge(2, 3)))
    assert [(name, goes_into) for name, *_rest, goes_into in found] == [
        ("SinBackward0 #1", "SinBackward0 #2"),
        ("SinBackward0 #2", "SinBackward0 #3"),
        ("SinBackward0 #3", "y"),
        ("y", ""),
    ]


def test_what_a_node_saved_and_which_output_an_edge_leaves():
    node = Card(0, "function", "MmBackward0", shape=(3, 2), dtype="float32", saved=("mat2 (4×2)", "self (3×4)"))
    z = Card(1, "function", "MulBackward0", names=("z",), is_root=True)
    found = rows(node, z, edges=(Edge(0, 1, 0, 1, derivative=2.0), Edge(0, 1, 1, 0)))[0]
    assert found[2:] == ("3×2 float32; saved: mat2 (4×2), self (3×4)", "", "z (out 1) × 2, z")
