"""The small picture of a graph: its cards and edges where the large one has them, with the names of tensors and nothing else.

The drawing itself, shown small, has text of four pixels. Names stay as long as there is room for them: first those of all
cards, else those of leaves and roots, else none, and the picture shows the shape alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from typing import NamedTuple

from .draw import Point, arrange_cards, shorten_line, stands_upright
from .model import Edge, Graph

WIDTH, HEIGHT = 224, 96
_LETTER = 7.3  # width of a monospaced letter of 12 px
_PAD, _GAP = 2, 6
_SHORTEST = 10  # of an edge, from left to right


class _Box(NamedTuple):
    x: float
    y: float
    wide: float
    high: float


def draw_picture(graph: Graph, *, show_saved: bool = False) -> str:
    """The picture, for an element of class ``graph``."""
    _boxes, across, down = arrange_cards(graph, show_saved=show_saved)
    centers = across.cards  # every graph lies here
    if stands_upright(across, down):
        centers = {key: (y, x) for key, (x, y) in down.cards.items()}
    all_names = {card.key: shorten_line(", ".join(card.names)) for card in graph.cards}
    ends = {card.key for card in graph.cards if card.kind == "leaf" or card.is_root}
    for names in (all_names, {key: name for key, name in all_names.items() if key in ends}, {}):
        boxes = _place_boxes(centers, names)
        if not _is_crowded(boxes, graph.edges):
            break
    kinds = {card.key: "root" if card.is_root else card.kind for card in graph.cards}
    parts = [_draw_edge(boxes[edge.tail], boxes[edge.head], kinds[edge.tail] == "constant") for edge in graph.edges]
    parts += [_draw_card(box, kinds[key], names.get(key, "")) for key, box in boxes.items()]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def _place_boxes(centers: Mapping[int, Point], names: Mapping[int, str]) -> dict[int, _Box]:
    """The cards spread over the whole picture: columns as they were, side by side."""
    wide = [len(names[key]) * _LETTER + 12 if names.get(key) else 18.0 for key in centers]
    high = [22.0 if names.get(key) else 12.0 for key in centers]
    across = _spread_cards([x for x, _y in centers.values()], wide, WIDTH)
    down = _spread_cards([y for _x, y in centers.values()], high, HEIGHT)
    return {key: _Box(*box) for key, *box in zip(centers, across, down, wide, high, strict=True)}


def _spread_cards(centers: Sequence[float], sizes: Sequence[float], room: float) -> list[float]:
    """New centers of cards between 0 and ``room``.

    >>> _spread_cards([100.0, 500.0], [20.0, 20.0], 100)
    [12.0, 88.0]
    """
    least, most = min(centers), max(centers)
    if most == least:
        return [room / 2] * len(centers)
    cards = list(zip(centers, sizes, strict=True))
    first = max(size for center, size in cards if center == least) / 2 + _PAD
    last = room - max(size for center, size in cards if center == most) / 2 - _PAD
    return [
        min(max(first + (center - least) / (most - least) * (last - first), size / 2 + _PAD), room - size / 2 - _PAD)
        for center, size in cards
    ]


def _is_crowded(boxes: Mapping[int, _Box], edges: Sequence[Edge]) -> bool:
    """Whether cards touch, or an edge is too short."""
    return any(
        abs(one.x - other.x) < (one.wide + other.wide) / 2 + _GAP
        and abs(one.y - other.y) < (one.high + other.high + _GAP) / 2
        for one, other in combinations(boxes.values(), 2)
    ) or any(
        head.x - head.wide / 2 - tail.x - tail.wide / 2 < _SHORTEST
        for tail, head in ((boxes[edge.tail], boxes[edge.head]) for edge in edges)
    )


def _draw_edge(start: _Box, end: _Box, is_dotted: bool) -> str:
    (x1, y1), (x2, y2) = (start.x + start.wide / 2, start.y), (end.x - end.wide / 2, end.y)
    bend = (x2 - x1) / 2
    curve = f"C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2 - 5:.0f},{y2:.0f}"
    head = f'<polygon points="{x2:.0f},{y2:.0f} {x2 - 6:.0f},{y2 - 3:.0f} {x2 - 6:.0f},{y2 + 3:.0f}"/>'
    return f'<g class="g-edge{" g-dotted" if is_dotted else ""}"><path d="M{x1:.0f},{y1:.0f}{curve}"/>{head}</g>'


def _draw_card(box: _Box, kind: str, name: str) -> str:
    text = (
        f'<text class="g-name" x="{box.x:.0f}" y="{box.y + 4:.0f}">{escape(name, quote=False)}</text>' if name else ""
    )
    return (
        f'<g class="g-card g-{kind}"><rect x="{box.x - box.wide / 2:.0f}" y="{box.y - box.high / 2:.0f}" '
        f'width="{box.wide:.0f}" height="{box.high:.0f}" rx="{4 if name else 3}"/>{text}</g>'
    )
