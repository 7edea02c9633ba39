"""``describe`` says in rows what the drawing shows: one row a card, in the order of the forward pass."""

from __future__ import annotations

import torch
from shorthand import graph_of

from graphs.describe import describe_graph
from graphs.model import Card, Edge, Graph


def rows(*cards: Card, edges: tuple[Edge, ...] = ()) -> list[tuple[str, ...]]:
    return [row.cells() for row in describe_graph(Graph(cards, edges))]


def test_first_graph():
    x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    a = x1 * x2
    y1, y2 = torch.log(a), torch.sin(x2)
    w = y1 * y2
    w.backward(retain_graph=True)
    found = {row.name: row.cells()[1:] for row in describe_graph(graph_of("w", x1=x1, x2=x2, a=a, y1=y1, y2=y2, w=w))}

    assert found == {
        "x1": ("leaf", "2", "0.0706", "a × 3"),
        "x2": ("leaf", "3", "−1.7268 = −1.7738 + 0.0470", "a × 2, y2 × −0.9900"),
        "a": ("MulBackward0", "6", "", "y1 × 0.1667"),
        "y1": ("LogBackward0", "1.7918", "", "w × 0.1411"),
        "y2": ("SinBackward0", "0.1411", "", "w × 1.7918"),
        "w": ("root · MulBackward0", "0.2529", "", ""),
    }


def test_the_order_is_that_of_the_graph():
    cards = [Card(key, "function", f"F{key}") for key in (4, 2, 9)]
    assert [row.name for row in describe_graph(Graph(tuple(cards), ()))] == ["F4", "F2", "F9"]


def test_a_card_that_no_variable_names_is_called_by_its_operation():
    assert rows(
        Card(0, "leaf"),
        Card(1, "constant", "constant"),
        Card(2, "accumulate", "AccumulateGrad"),
        Card(3, "folded", "7 nodes: SinBackward0 ×7"),
        Card(4, "function", "SinBackward0", is_root=True),
    ) == [
        ("leaf", "leaf", "", "", ""),
        ("constant", "constant", "", "", ""),
        ("AccumulateGrad", "AccumulateGrad", "", "", ""),
        ("7 nodes: SinBackward0 ×7", "7 nodes: SinBackward0 ×7", "", "", ""),
        ("SinBackward0", "root", "", "", ""),
    ]


def test_a_leaf_that_is_the_root_says_both():
    assert rows(Card(0, "leaf", names=("x",), is_root=True)) == [("x", "leaf · root", "", "", "")]


def test_cards_of_one_kind_are_numbered_and_edges_lead_to_the_right_one():
    same = [Card(key, "function", "SinBackward0") for key in range(3)]
    found = rows(*same, Card(3, "function", "Add", names=("y",)), edges=(Edge(0, 1), Edge(1, 2), Edge(2, 3)))
    assert [(name, goes_into) for name, *_rest, goes_into in found] == [
        ("SinBackward0 #1", "SinBackward0 #2"),
        ("SinBackward0 #2", "SinBackward0 #3"),
        ("SinBackward0 #3", "y"),
        ("y", ""),
    ]


def test_all_names_of_a_tensor():
    assert rows(Card(0, "function", "SinBackward0", names=("y", "loss")))[0][:2] == ("y, loss", "SinBackward0")


def test_shapes_stand_for_values_that_are_no_scalars():
    weight = Card(0, "leaf", names=("w",), shape=(3, 4), dtype="float32", gradient_shape=(3, 4))
    assert rows(weight) == [("w", "leaf", "3×4 float32", "3×4", "")]


def test_what_a_node_saved():
    node = Card(0, "function", "MmBackward0", shape=(3, 2), dtype="float32", saved=("mat2 (4×2)", "self (3×4)"))
    assert rows(node)[0][2] == "3×2 float32; saved: mat2 (4×2), self (3×4)"


def test_minus_is_a_minus_sign():
    x = Card(0, "leaf", names=("x",), shape=(), value=-2.0, gradient=-3.0, terms=(-1.0, -2.0))
    y = Card(1, "function", "NegBackward0", names=("y",), is_root=True)
    found = rows(x, y, edges=(Edge(0, 1, derivative=-1.0),))
    assert found[0] == ("x", "leaf", "−2", "−3 = −1 + −2", "y × −1")


def test_complex_numbers():
    z = Card(0, "leaf", names=("z",), shape=(), value=1 - 2j, gradient=2 + 4j)
    assert rows(z)[0][2:4] == ("1−2i", "2+4i")


def test_an_edge_says_which_output_it_leaves():
    unbind = Card(0, "function", "UnbindBackward0", names=("a", "b"))
    z = Card(1, "function", "MulBackward0", names=("z",), is_root=True)
    goes_into = rows(unbind, z, edges=(Edge(0, 1, 0, 1, derivative=2.0), Edge(0, 1, 1, 0)))[0][-1]
    first, second = goes_into.split(", ")
    assert "out 1" in first and "× 2" in first  # as the drawing says it
    assert second == "z"


def test_an_empty_graph_has_no_rows():
    assert describe_graph(Graph((), ())) == []
