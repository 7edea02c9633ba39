"""Make a large graph small enough to read, and to lay out in bounded time.

Layout time grows faster than the graph, and a layout that runs in this process cannot be interrupted, so folding comes
first. Runs of nodes that no variable names become one card; if that is not enough, only what is nearest the root stays.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

from .model import Card, Graph

#: Graphs up to this many cards are drawn as they are.
READABLE = 40
#: No drawing has more cards than this.
DRAWN = 80


def fold_graph(graph: Graph, *, readable: int = READABLE, drawn: int = DRAWN) -> Graph:
    """Return ``graph``, or a smaller one that says what it leaves out.

    >>> from graphs.model import Card, Edge, Graph
    >>> chain = Graph(tuple(Card(i, "function", f"F{i}") for i in range(5)), tuple(Edge(i, i + 1) for i in range(4)))
    >>> fold_graph(chain) is chain
    True
    >>> [card.operation for card in fold_graph(chain, readable=3).cards]
    ['F0', '3 nodes: F1, F2, F3', 'F4']
    """
    if len(graph.cards) <= readable:
        return graph
    folded = _fold_runs(_drop_constants(graph))
    if len(folded.cards) > drawn:
        return _keep_nearest_to_roots(folded, drawn)
    return replace(folded, program=graph.program)


def _drop_constants(graph: Graph) -> Graph:
    kept = tuple(card for card in graph.cards if card.kind != "constant")
    keys = {card.key for card in kept}
    return Graph(kept, tuple(edge for edge in graph.edges if edge.tail in keys))


def _fold_runs(graph: Graph) -> Graph:
    """Contract every maximal run of two or more unnamed function nodes with one way in and one way out."""
    entering = Counter(edge.head for edge in graph.edges)
    leaving = Counter(edge.tail for edge in graph.edges)
    follows = {edge.tail: edge.head for edge in graph.edges}
    inner = {
        card.key
        for card in graph.cards
        if card.kind == "function"
        and not card.names
        and not card.is_root
        and entering[card.key] == leaving[card.key] == 1
    }
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
        _merge_cards(card.key, runs[card.key]) if card.key in runs else card
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


def _merge_cards(key: int, cards: list[Card]) -> Card:
    """One card for ``cards``. It is through when the last of them is."""
    forward, backward = (max(getattr(card, which) for card in cards) for which in ("forward_at", "backward_at"))
    return Card(key, "folded", operation=_summarize_cards(cards), forward_at=forward, backward_at=backward)


def _summarize_cards(cards: list[Card]) -> str:
    counts = Counter(card.operation for card in cards)
    kinds = [name if count == 1 else f"{name} ×{count}" for name, count in counts.items()]
    shown = ", ".join(kinds[:3]) + (", …" if len(kinds) > 3 else "")
    return f"{len(cards)} nodes: {shown}"


def _keep_nearest_to_roots(graph: Graph, drawn: int) -> Graph:
    arriving: dict[int, list[int]] = {}
    for edge in graph.edges:
        arriving.setdefault(edge.head, []).append(edge.tail)
    accumulates = {card.key for card in graph.cards if card.kind == "accumulate"}
    queue = deque([card.key for card in graph.cards if card.is_root][:drawn])
    kept: set[int] = set(queue)
    while queue and len(kept) < drawn:
        for tail in arriving.get(queue.popleft(), []):
            # an AccumulateGrad card without its leaf would say nothing of what it adds to
            together = {tail, *arriving[tail]} if tail in accumulates else {tail}
            if tail not in kept and len(kept | together) <= drawn:
                kept |= together
                queue.append(tail)
    cards = tuple(card for card in graph.cards if card.key in kept)
    edges = tuple(edge for edge in graph.edges if edge.tail in kept and edge.head in kept)
    return Graph(cards, edges, left_out=len(graph.cards) - len(cards))
