"""Short ways to read a script's graph and to say what it looks like, so that a test compares it with one written by hand."""

from __future__ import annotations

from typing import Any

import torch

from drawgrad.model import Card, Graph
from drawgrad.read import read_graph


def graph_of(roots: str, /, *, accumulate: bool = False, **variables: Any) -> Graph:
    """Read the graph of the variables named in ``roots``, and check what holds for every graph."""
    graph = read_graph({root: variables[root] for root in roots.split()}, variables, accumulate=accumulate)
    check(graph)
    return graph


def check(graph: Graph) -> None:
    """Keys are unique, edges join cards of the graph, and inputs stand before what they feed."""
    place = {card.key: number for number, card in enumerate(graph.cards)}
    assert len(place) == len(graph.cards)
    for edge in graph.edges:
        assert place[edge.tail] < place[edge.head]


def label(card: Card) -> str:
    return ", ".join(card.names) or card.operation or card.kind


def labels(graph: Graph) -> list[str]:
    return [label(card) for card in graph.cards]


def card(graph: Graph, wanted: str) -> Card:
    """The only card with this label."""
    (found,) = [card for card in graph.cards if label(card) == wanted]
    return found


def edges(graph: Graph) -> set[tuple[str, str, int, int]]:
    """Every edge as (from, to, input number, output number); labels must be unique to tell edges apart."""
    names = {card.key: label(card) for card in graph.cards}
    return {(names[edge.tail], names[edge.head], edge.input, edge.output) for edge in graph.edges}


def derivatives(graph: Graph) -> dict[tuple[str, str, int], float | None]:
    """The local derivative of every edge by (from, to, input number)."""
    names = {card.key: label(card) for card in graph.cards}
    return {(names[edge.tail], names[edge.head], edge.input): edge.derivative for edge in graph.edges}


def first_graph() -> dict[str, torch.Tensor]:
    """The variables of the first graph of the site: w = log(x1 · x2) · sin(x2)."""
    x1, x2 = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    a = x1 * x2
    y1, y2 = torch.log(a), torch.sin(x2)
    return {"x1": x1, "x2": x2, "a": a, "y1": y1, "y2": y2, "w": y1 * y2}
