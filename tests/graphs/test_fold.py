"""``fold`` bounds what is drawn: runs of unnamed nodes become one card, then only what is nearest the roots stays."""

from __future__ import annotations

import pytest
import torch
from shorthand import check, edges, graph_of, labels

from drawgrad.model import DRAWN, READABLE, Card, Edge, Graph, fold_graph


def chain(length: int, **changes: Card) -> Graph:
    """``x`` → F1 → … → ``y`` with ``length`` cards; ``changes`` replaces cards by key (``k3=Card(3, …)``)."""
    cards = {f"k{key}": Card(key, "function", f"F{key}") for key in range(length)}
    cards |= {"k0": Card(0, "leaf", names=("x",))} | changes
    cards[f"k{length - 1}"] = Card(length - 1, "function", "Last", names=("y",), is_root=True)
    return Graph(tuple(cards.values()), tuple(Edge(key, key + 1, derivative=2.0) for key in range(length - 1)))


def folded(graph: Graph, *, readable: int = 3, drawn: int = DRAWN) -> Graph:
    small = fold_graph(graph, readable=readable, drawn=drawn)
    check(small)
    return small


def test_a_readable_graph_stays_as_it_is():
    assert fold_graph(graph := chain(READABLE)) is graph
    assert fold_graph(graph := chain(READABLE + 1)) is not graph


def test_a_run_of_unnamed_nodes_becomes_one_card():
    graph = folded(chain(6))
    assert labels(graph) == ["x", "4 nodes: F1, F2, F3, …", "y"]
    assert edges(graph) == {("x", "4 nodes: F1, F2, F3, …", 0, 0), ("4 nodes: F1, F2, F3, …", "y", 0, 0)}
    assert [card.kind for card in graph.cards] == ["leaf", "folded", "function"]
    assert graph.left_out == 0


def test_the_edges_of_a_folded_card_have_no_derivative():
    same = {f"k{key}": Card(key, "function", "MulBackward0") for key in (3, 4, 6)}
    graph = folded(chain(8, k2=Card(2, "function", names=("kept",)), **same))
    assert labels(graph) == ["x", "F1", "kept", "4 nodes: MulBackward0 ×3, F5", "y"]
    assert [edge.derivative for edge in graph.edges] == [2.0, 2.0, None, None]


@pytest.mark.parametrize("facts", [{"names": ("a",)}, {"is_root": True}, {"kind": "accumulate"}], ids=str)
def test_what_is_never_folded(facts):
    kept = Card(**{"key": 3, "kind": "function", "operation": "F3"} | facts)
    graph = folded(chain(7, k3=kept))
    assert kept in graph.cards
    assert [card.kind for card in graph.cards].count("folded") == 2


def test_a_run_ends_where_paths_part_or_meet():
    cards = tuple(Card(key, "function", f"F{key}", is_root=key == 9) for key in range(10))
    # 0 → 1 → 2 ⇉ (3 → 4, 5 → 6) ⇉ 7 → 8 → 9
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 5), (5, 6), (4, 7), (6, 7), (7, 8), (8, 9)]
    graph = folded(Graph(cards, tuple(Edge(tail, head) for tail, head in pairs)))
    assert labels(graph) == ["F0", "F1", "F2", "2 nodes: F3, F4", "2 nodes: F5, F6", "F7", "F8", "F9"]
    assert {("F2", "2 nodes: F3, F4", 0, 0), ("2 nodes: F5, F6", "F7", 0, 0)} <= edges(graph)


def test_only_what_is_nearest_the_root_stays():
    named = {f"k{key}": Card(key, "function", "F", names=(f"n{key}",)) for key in range(1, 9)}
    graph = folded(chain(10, **named), drawn=4)
    assert labels(graph) == ["n6", "n7", "n8", "y"]
    assert (len(graph.edges), graph.left_out) == (3, 6)


@pytest.mark.parametrize("drawn", [DRAWN, DRAWN - 1])
def test_an_accumulate_grad_stays_with_its_leaf_or_not_at_all(drawn):
    leaves = [torch.tensor(1.0, requires_grad=True) for _ in range(60)]
    graph = folded(graph_of("y", accumulate=True, leaves=leaves, y=sum(leaves)), drawn=drawn)
    assert graph.left_out
    accumulates = {card.key for card in graph.cards if card.kind == "accumulate"}
    assert accumulates and {edge.head for edge in graph.edges if edge.head in accumulates} == accumulates
    assert len(graph.cards) <= drawn


# --- graphs as large as scripts make them --------------------------------------------------------


def test_a_chain_of_5_000_nodes_is_deeper_than_the_stack():
    y = x = torch.ones(2, requires_grad=True)
    for _step in range(5_000):
        y = -y
    whole = graph_of("y", x=x, y=y)
    assert len(whole.cards) == 5_001
    assert labels(fold_graph(whole)) == ["x", "4999 nodes: NegBackward0 ×4999", "y"]
