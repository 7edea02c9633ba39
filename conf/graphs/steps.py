"""A graph as a play: forward, node by node, then backward in the engine's order, with what arrives where.

The numbers are those of the run: values and gradients of the tensors, and local derivatives that the nodes themselves gave.
What moves along an edge is their product. Where the products do not add up to a gradient that a tensor holds (a hook changed
it, or two backward passes added up), no number is said at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from graphs.model import Card, Graph

Kind = Literal["leaves", "compute", "start", "send", "keep"]


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of the play.

    ``leaves``: the cards are there before anything is computed. ``compute``: forward runs the card's node. ``start``: the
    first gradient arrives at the card, a root. ``send``: backward calls the card's node, and gradients move along ``edges``.
    ``keep``: AccumulateGrad adds what has arrived to the card's ``.grad``.
    """

    kind: Kind
    cards: tuple[int, ...]
    """Keys of the cards it is about."""
    edges: tuple[int, ...] = ()
    """Places in ``Graph.edges``: those that values, or gradients, move along."""
    moved: tuple[float | None, ...] = ()
    """What moves along each of ``edges`` in backward; None where it is no number, or is not known."""
    arrived: tuple[tuple[float | None, ...], ...] = ()
    """For ``start`` and ``keep``, of the card, and for ``send``, of the card at the tail of each of ``edges``: all that has
    arrived there until then, contribution by contribution."""


def steps(graph: Graph) -> list[Step]:
    """The play of ``graph``: of a graph that is left out in part, what is drawn of it.

    >>> from graphs.model import Card, Edge, Graph
    >>> x = Card(0, "leaf", names=("x",), backward_at=1)
    >>> y = Card(1, "function", "SinBackward0", ("y",), is_root=True, shape=())
    >>> for step in steps(Graph((x, y), (Edge(0, 1, derivative=0.5),))):
    ...     print(step.kind, step.cards, step.edges, step.moved, step.arrived)
    leaves (0,) () () ()
    compute (1,) (0,) () ()
    start (1,) () () ((1.0,),)
    send (1,) (0,) (0.5,) ((0.5,),)
    keep (0,) () () ((0.5,),)
    """
    played = _play(graph, with_numbers=True)
    return played if _agrees(graph, played) else _play(graph, with_numbers=False)


def _play(graph: Graph, *, with_numbers: bool) -> list[Step]:
    at = {card.key: card for card in graph.cards}
    entering: dict[int, list[int]] = {card.key: [] for card in graph.cards}
    for number, edge in enumerate(graph.edges):
        entering[edge.head].append(number)
    computed = [card for card in graph.cards if card.kind in ("function", "folded")]
    there = tuple(card.key for card in graph.cards if card not in computed)
    play = [Step("leaves", there)] if there else []
    for card in sorted(computed, key=lambda card: card.forward_at):
        play.append(Step("compute", (card.key,), tuple(entering[card.key])))

    arrived: dict[int, list[float | None]] = {card.key: [] for card in graph.cards}
    for card in graph.cards:
        if card.is_root:
            arrived[card.key].append(_first(card) if with_numbers else None)
            play.append(Step("start", (card.key,), arrived=(tuple(arrived[card.key]),)))
    # a leaf whose AccumulateGrad has a card of its own is not called itself
    not_called = {edge.tail for edge in graph.edges if at[edge.head].kind == "accumulate"}
    called = [card for card in graph.cards if card.kind != "constant" and card.key not in not_called]
    for card in sorted(called, key=lambda card: card.backward_at):
        if card.kind in ("leaf", "accumulate"):
            leaf = at[graph.edges[entering[card.key][0]].tail] if card.kind == "accumulate" else card
            arrived[leaf.key] = arrived[card.key]
            play.append(Step("keep", (leaf.key,), tuple(entering[card.key]), arrived=(tuple(arrived[card.key]),)))
            continue
        whole = total(arrived[card.key])
        edges = tuple(number for number in entering[card.key] if at[graph.edges[number].tail].kind != "constant")
        moved = tuple(graph.edges[number].passes(whole) for number in edges)
        for number, what in zip(edges, moved, strict=True):
            arrived[graph.edges[number].tail].append(what)
        so_far = tuple(tuple(arrived[graph.edges[number].tail]) for number in edges)
        play.append(Step("send", (card.key,), edges, moved, so_far))
    return play


def _first(card: Card) -> float | None:
    """What backward starts with: 1, for a root that is a number. ``.grad`` tells, where it is kept."""
    if not card.is_scalar:
        return None
    if card.gradient is None:
        return 1.0
    return None if isinstance(card.gradient, complex) else float(card.gradient)


def total(parts: Sequence[float | None]) -> float | None:
    """The sum of what has arrived; None where a part is not known, or nothing has arrived."""
    known = [part for part in parts if part is not None]
    return math.fsum(known) if known and len(known) == len(parts) else None


def _agrees(graph: Graph, play: list[Step]) -> bool:
    """Whether what arrives at each tensor that holds a gradient is that gradient."""
    arrived: dict[int, float | None] = {}
    for step in play:
        if step.kind == "send":
            arrived |= {
                graph.edges[number].tail: total(parts) for number, parts in zip(step.edges, step.arrived, strict=True)
            }
    for card in graph.cards:
        found = arrived.get(card.key)
        if found is None or card.gradient is None:
            continue
        if isinstance(card.gradient, complex) or not math.isclose(found, card.gradient, rel_tol=1e-4, abs_tol=1e-6):
            return False
    return True
