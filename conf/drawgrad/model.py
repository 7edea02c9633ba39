"""The backward graph as plain data: cards joined by edges, in the order of the forward pass; its form in JSON; made smaller.

Nothing here holds a tensor or a node, so a graph can be kept, compared and drawn after the script is gone.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal

#: A leaf of more numbers has no room for them on its card.
CHANGEABLE = 3
#: Graphs up to this many cards are drawn as they are.
READABLE = 40
#: No drawing has more cards than this.
DRAWN = 80

Kind = Literal["leaf", "function", "accumulate", "constant", "folded", "outside"]


@dataclass(frozen=True, slots=True)
class Card:
    """One box of the drawing.

    ``kind`` is ``leaf`` for a tensor that no node computed, ``function`` for a node, ``accumulate`` for an AccumulateGrad
    node that the page asked to see, ``constant`` for an input that needs no gradient (a None edge), ``folded`` for
    operations drawn as one, ``outside`` for what a module that is drawn alone gets its inputs from, or gives its result to.
    """

    key: int
    kind: Kind
    #: The node's own name (``MulBackward0``), or what a folded card stands for.
    operation: str = ""
    #: The script's variables for the node's outputs, or for the leaf.
    names: tuple[str, ...] = ()
    is_root: bool = False
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    #: The value, known when a variable names the tensor and it has one element.
    value: float | complex | None = None
    #: ``.grad`` where it is kept and has one element.
    gradient: float | complex | None = None
    gradient_shape: tuple[int, ...] | None = None
    #: The values of a small vector: as many as a card has room for.
    numbers: tuple[float, ...] = ()
    #: Those of its ``.grad``.
    gradient_numbers: tuple[float, ...] = ()
    #: The contributions that add up to ``gradient`` where several paths meet.
    terms: tuple[float, ...] = ()
    #: What the node keeps for backward: ``self (3×4)``, or ``freed``.
    saved: tuple[str, ...] = ()
    #: The norm of its ``.grad``, where the reader asked for it; this and the rest are of figures of the reader's own.
    gradient_norm: float | None = None
    #: How strongly the norm tints the card: from 1 to 5, 0 for not at all.
    tint: int = 0
    #: What is wrong with its ``.grad``: ``None``, ``all zero``.
    alarm: str = ""
    #: The memory of what the node saved, or of a leaf: what tells it from other, and its bytes.
    kept: tuple[tuple[int, int], ...] = ()
    #: The number that autograd gave the node: the line of the script that recorded it can be told from it.
    recorded_as: int | None = None
    #: Its place in the order in which forward recorded the nodes.
    forward_at: int = 0
    #: Its place in the order in which the engine calls the nodes in backward.
    backward_at: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """Data flows from card ``tail`` to card ``head``; the gradient flows back along the same edge."""

    tail: int
    head: int
    #: Which input of ``head`` this is.
    input: int = 0
    #: Which output of ``tail`` this is: the number in ``next_functions``.
    output: int = 0
    #: The local derivative, known for scalars only.
    derivative: float | None = None

    def pass_back(self, gradient: float | None) -> float | None:
        """What reaches ``tail`` when ``gradient`` has arrived at ``head``; None where one of the two is not known.

        >>> Edge(0, 1, derivative=3.0).pass_back(2.0)
        6.0
        """
        return None if gradient is None or self.derivative is None else gradient * self.derivative


@dataclass(frozen=True, slots=True)
class Instruction:
    """What one node computes. A tensor is the row of its numbers here, a node's outputs stand one after the other."""

    #: The node's name, or that of what it does with whole tensors: ``take``, ``sum``, ``prod``; ``leaf`` or ``constant``.
    operation: str
    #: How many numbers it gives.
    size: int
    #: Keys, in the order of the node's edges.
    inputs: tuple[int, ...] = ()
    #: For each input, which of its numbers meet those of the result; None where they are as many, or there is one for all.
    places: tuple[tuple[int, ...] | None, ...] = ()
    #: Of a leaf or a constant its values, of a node the numbers that it was called with: an exponent, bounds.
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What computes a graph's numbers. Nodes that are folded away are in it too."""

    is_float32: bool
    #: By key, each after those of its inputs.
    instructions: Mapping[int, Instruction]
    #: The gradient with which backward starts, for each root.
    start: Mapping[int, tuple[float, ...]]
    #: Keys in the order in which the engine calls their nodes.
    backward: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """Cards in topological order, inputs before results, and the edges between them."""

    cards: tuple[Card, ...]
    edges: tuple[Edge, ...]
    #: How many nodes are not drawn because the graph is too large.
    left_out: int = 0
    #: What computes its numbers from those of its leaves, where that is known of each node.
    program: Program | None = None


# -- As JSON --------------------------------------------------------------------------------------


def graph_to_dict(graph: Graph) -> dict[str, Any]:
    """The graph as plain data that JSON can hold; what has its default value is left out.

    >>> graph_to_dict(Graph((Card(0, "leaf", names=("x",), value=float("inf")),), ()))
    {'cards': [{'key': 0, 'kind': 'leaf', 'names': ['x'], 'value': {'number': 'inf'}}], 'edges': []}
    """
    return _to_plain(graph)


def graph_from_dict(data: Mapping[str, Any]) -> Graph:
    """The graph of which ``data`` is the form in JSON.

    :raises TypeError, KeyError: if it has other fields than a graph, as one that other code wrote.
    """
    cards = tuple(Card(**_from_plain(card)) for card in data["cards"])
    edges = tuple(Edge(**_from_plain(edge)) for edge in data["edges"])
    program = data.get("program")
    return Graph(cards, edges, data.get("left_out", 0), program and _program_from_dict(program))


def _program_from_dict(data: Mapping[str, Any]) -> Program:
    instructions = {int(key): Instruction(**_from_plain(one)) for key, one in data["instructions"].items()}
    start = {int(key): _from_plain(numbers) for key, numbers in data["start"].items()}
    return Program(data["is_float32"], instructions, start, tuple(data["backward"]))


def _to_plain(value: Any) -> Any:
    match value:
        case complex():
            return {"real": _to_plain(value.real), "imag": _to_plain(value.imag)}
        case float() if not math.isfinite(value):
            return {"number": str(value)}
        case tuple():
            return [_to_plain(item) for item in value]
        case Mapping():
            return {str(key): _to_plain(item) for key, item in value.items()}
        case Card() | Edge() | Graph() | Instruction() | Program():
            named = ((field, getattr(value, field.name)) for field in fields(value))
            return {of.name: _to_plain(item) for of, item in named if of.default is MISSING or item != of.default}
    return value


def _from_plain(value: Any) -> Any:
    match value:
        case list():
            return tuple(_from_plain(item) for item in value)
        case {"number": number}:
            return float(number)
        case {"real": real, "imag": imag}:
            return complex(_from_plain(real), _from_plain(imag))
        case dict():
            return {key: _from_plain(item) for key, item in value.items()}
    return value


# -- Large graphs ---------------------------------------------------------------------------------
# Layout time grows faster than the graph, and a layout that runs in this process cannot be interrupted, so folding comes
# first. Runs of nodes that no variable names become one card; if that is not enough, only what is nearest the root stays.


def fold_graph(graph: Graph, *, readable: int = READABLE, drawn: int = DRAWN) -> Graph:
    """Return ``graph``, or a smaller one that says what it leaves out.

    >>> chain = Graph(tuple(Card(i, "function", f"F{i}") for i in range(5)), tuple(Edge(i, i + 1) for i in range(4)))
    >>> fold_graph(chain) is chain
    True
    >>> [card.operation for card in fold_graph(chain, readable=3).cards]
    ['F0', '3 nodes: F1, F2, F3', 'F4']
    """
    if len(graph.cards) <= readable:
        return graph
    folded = _fold_runs(_keep_cards(graph, {card.key for card in graph.cards if card.kind != "constant"}))
    folded = replace(folded, left_out=graph.left_out)
    if len(folded.cards) > drawn:
        return _keep_nearest_to_roots(folded, drawn)
    return replace(folded, program=graph.program)


def _keep_cards(graph: Graph, kept: set[int]) -> Graph:
    cards = tuple(card for card in graph.cards if card.key in kept)
    return Graph(cards, tuple(edge for edge in graph.edges if edge.tail in kept and edge.head in kept))


def _fold_runs(graph: Graph) -> Graph:
    """Contract every maximal run of two or more unnamed function nodes with one way in and one way out."""
    entering = Counter(edge.head for edge in graph.edges)
    leaving = Counter(edge.tail for edge in graph.edges)
    follows = {edge.tail: edge.head for edge in graph.edges}
    unnamed = [card for card in graph.cards if card.kind == "function" and not card.names and not card.is_root]
    inner = {card.key for card in unnamed if entering[card.key] == leaving[card.key] == 1}
    run_of: dict[int, int] = {}
    members: dict[int, list[Card]] = {}
    for card in graph.cards:
        if card.key in inner:
            first = run_of.setdefault(card.key, card.key)
            members.setdefault(first, []).append(card)
            if follows[card.key] in inner:
                run_of[follows[card.key]] = first
    runs = {first: cards for first, cards in members.items() if len(cards) > 1}
    stands_for = {card.key: first for first, cards in runs.items() for card in cards}
    cards = tuple(
        _merge_run(card.key, runs[card.key]) if card.key in runs else card
        for card in graph.cards
        if stands_for.get(card.key, card.key) == card.key
    )
    # a folded card has no local derivative of its own: it stands for several
    edges = tuple(
        replace(edge, tail=tail, head=head, derivative=None if {tail, head} & runs.keys() else edge.derivative)
        for edge in graph.edges
        if (tail := stands_for.get(edge.tail, edge.tail)) != (head := stands_for.get(edge.head, edge.head))
    )
    return Graph(cards, edges)


def merge_cards(cards: Sequence[Card], key: int, said: str, names: tuple[str, ...] = ()) -> Card:
    """The card drawn for all ``cards``, of which it says ``said``. It is through when the last of them is."""
    forward, backward = (max(getattr(card, which) for card in cards) for which in ("forward_at", "backward_at"))
    is_root = any(card.is_root for card in cards)
    return Card(key, "folded", said, names, is_root, forward_at=forward, backward_at=backward)


def _merge_run(key: int, cards: list[Card]) -> Card:
    counts = Counter(card.operation for card in cards)
    kinds = [name if count == 1 else f"{name} ×{count}" for name, count in counts.items()]
    said = f"{len(cards)} nodes: {', '.join(kinds[:3])}{', …' if len(kinds) > 3 else ''}"
    return merge_cards(cards, key, said)


def _keep_nearest_to_roots(graph: Graph, drawn: int) -> Graph:
    arriving: dict[int, list[int]] = {}
    for edge in graph.edges:
        arriving.setdefault(edge.head, []).append(edge.tail)
    accumulates = {card.key for card in graph.cards if card.kind == "accumulate"}
    ends = {card.key for card in graph.cards} - {edge.tail for edge in graph.edges}  # of a module that is drawn alone
    queue = deque([card.key for card in graph.cards if card.is_root or card.key in ends][:drawn])
    kept: set[int] = set(queue)
    while queue and len(kept) < drawn:
        for tail in arriving.get(queue.popleft(), []):
            # an AccumulateGrad card without its leaf would say nothing of what it adds to
            together = {tail, *arriving[tail]} if tail in accumulates else {tail}
            if tail not in kept and len(kept | together) <= drawn:
                kept |= together
                queue.append(tail)
    return replace(_keep_cards(graph, kept), left_out=graph.left_out + len(graph.cards) - len(kept))
