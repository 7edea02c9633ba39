"""The small picture of a graph: its cards and edges where the large one has them, with the names of tensors and nothing else.

The drawing itself, shown small, has text of four pixels. Names stay as long as there is room for them: first those of all
cards, else those of leaves and roots, else none, and the picture shows the shape alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations

from .draw import arrange_cards, shorten_line, stands_upright
from .model import Graph

WIDTH, HEIGHT = 224, 96
_LETTER = 7.3  # width of a monospaced letter of 12 px
_HIGH = 22  # of a card with a name
_PAD = 2
_SHORTEST = 10  # of an edge, from left to right


@dataclass(frozen=True, slots=True)
class _Card:
    kind: str
    x: float
    y: float
    name: str = ""

    @property
    def wide(self) -> float:
        return len(self.name) * _LETTER + 12 if self.name else 18.0

    @property
    def high(self) -> float:
        return _HIGH if self.name else 12.0


def draw_picture(graph: Graph, *, show_saved: bool = False) -> str:
    """The picture, for an element of class ``graph``."""
    _boxes, across, down = arrange_cards(graph, show_saved=show_saved)
    is_upright = stands_upright(across, down)  # here every graph lies
    found = {}
    for card in graph.cards:
        x, y = reversed(down.cards[card.key]) if is_upright else across.cards[card.key]
        kind = f"g-{'root' if card.is_root else card.kind}"
        found[card.key] = _Card(kind, x, y, shorten_line(", ".join(card.names)))
    kinds = {card.key: card.kind for card in graph.cards}
    edges = [
        ("g-edge g-dotted" if kinds[edge.tail] == "constant" else "g-edge", edge.tail, edge.head)
        for edge in graph.edges
    ]
    cards = next(placed for placed in _candidates(found, edges) if placed)
    arrows = "".join(_edge(kind, cards[start], cards[end]) for kind, start, end in edges)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{arrows}{"".join(map(_drawn, cards.values()))}</svg>'
    )


def _candidates(cards: dict[int, _Card], edges: list[tuple[str, int, int]]) -> Iterator[dict[int, _Card]]:
    """The cards in their places, with fewer and fewer names; nothing where there is no room. The last are never nothing."""
    bare = {number: replace(card, name="") for number, card in cards.items()}
    ends = {
        number: card if "g-leaf" in card.kind or "g-root" in card.kind else bare[number]
        for number, card in cards.items()
    }
    for some in (cards, ends):
        placed = _placed(some)
        crowded = any(_touch(*pair) for pair in combinations(placed.values(), 2))
        crowded |= any(_length(placed[start], placed[end]) < _SHORTEST for _kind, start, end in edges)
        yield {} if crowded else placed
    yield _placed(bare)


def _placed(cards: dict[int, _Card]) -> dict[int, _Card]:
    """The cards spread over the whole picture: columns as they were, side by side."""
    across = _spread([(card.x, card.wide) for card in cards.values()], WIDTH)
    down = _spread([(card.y, card.high) for card in cards.values()], HEIGHT)
    return {number: replace(card, x=x, y=y) for (number, card), x, y in zip(cards.items(), across, down, strict=True)}


def _spread(cards: list[tuple[float, float]], room: float) -> list[float]:
    """New centers of cards, each given as center and size, between 0 and ``room``.

    >>> _spread([(100.0, 20.0), (500.0, 20.0)], 100)
    [12.0, 88.0]
    """
    least, most = min(center for center, _size in cards), max(center for center, _size in cards)
    if most == least:
        return [room / 2] * len(cards)
    first = max(size for center, size in cards if center == least) / 2 + _PAD
    last = room - max(size for center, size in cards if center == most) / 2 - _PAD
    return [
        min(max(first + (center - least) / (most - least) * (last - first), size / 2 + _PAD), room - size / 2 - _PAD)
        for center, size in cards
    ]


def _touch(one: _Card, other: _Card) -> bool:
    gap = 6
    return (
        abs(one.x - other.x) < (one.wide + other.wide) / 2 + gap
        and abs(one.y - other.y) < (one.high + other.high) / 2 + gap / 2
    )


def _length(start: _Card, end: _Card) -> float:
    return end.x - end.wide / 2 - start.x - start.wide / 2


def _edge(kind: str, start: _Card, end: _Card) -> str:
    x1, x2 = start.x + start.wide / 2, end.x - end.wide / 2
    y1, y2 = start.y, end.y
    bend = (x2 - x1) / 2
    curve = f"C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2 - 5:.0f},{y2:.0f}"
    head = f'<polygon points="{x2:.0f},{y2:.0f} {x2 - 6:.0f},{y2 - 3:.0f} {x2 - 6:.0f},{y2 + 3:.0f}"/>'
    return f'<g class="{kind}"><path d="M{x1:.0f},{y1:.0f}{curve}"/>{head}</g>'


def _drawn(card: _Card) -> str:
    text = f'<text class="g-name" x="{card.x:.0f}" y="{card.y + 4:.0f}">{escape(card.name, quote=False)}</text>'
    return (
        f'<g class="g-card {card.kind}"><rect x="{card.x - card.wide / 2:.0f}" y="{card.y - card.high / 2:.0f}" '
        f'width="{card.wide:.0f}" height="{card.high:.0f}" rx="{4 if card.name else 3}"/>{text if card.name else ""}</g>'
    )
