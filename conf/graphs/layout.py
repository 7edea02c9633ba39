"""Where the cards and the edges of a drawing stand. Graphviz decides, in this process: no program is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import graphviz

try:
    import pygraphviz
except ImportError as error:
    raise ImportError(
        f"Graphviz, which lays out the figures, cannot be loaded: {error}. The wheel of pygraphviz carries Graphviz, and "
        "expects a few libraries that small images of Linux lack. On Debian and Ubuntu: "
        "apt-get install libglib2.0-0 libx11-6 libxext6 libxrender1 libexpat1"
    ) from error

from graphs.model import Graph

Point = tuple[float, float]

#: Distances in inches between cards of a rank, and between ranks: with numbers on the edges, which take a rank of their own,
#: and without. A phone has little room side by side.
_DISTANCES = {"LR": ("0.25", "0.2", "0.4"), "TB": ("0.12", "0.12", "0.3")}


@dataclass(frozen=True, slots=True)
class Route:
    """An edge: the Bézier control points of its line, the tip of its arrow, and the middle of its number, if it has one."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Pixels, downward as in SVG: the size of all, the middle of each card, and the edges in the order of the graph's."""

    width: float
    height: float
    cards: Mapping[int, Point]
    edges: tuple[Route, ...]


def lay_out(graph: Graph, sizes: Mapping[int, tuple[float, float]], rooms: Sequence[int], direction: str) -> Layout:
    """Lay a graph out from left to right (``LR``) or from top to bottom (``TB``).

    :param sizes: width and height of each card.
    :param rooms: for each edge how much room its number takes, 0 if it has none.
    """
    laid_out = pygraphviz.AGraph(string=_dot(graph, sizes, rooms, direction).source)
    laid_out.layout("dot")
    _, _, width, height = (float(number) for number in laid_out.graph_attr["bb"].split(","))

    def point(pair: str) -> Point:
        x, y = pair.split(",")
        return float(x), height - float(y)

    def route(edge: pygraphviz.Edge) -> Route:
        tip, *points = (point(pair) for pair in edge.attr["pos"].removeprefix("e,").split())
        return Route(tuple(points), tip, point(edge.attr["lp"]) if edge.attr["lp"] else None)

    return Layout(
        width,
        height,
        {card.key: point(laid_out.get_node(f"n{card.key}").attr["pos"]) for card in graph.cards},
        tuple(
            route(laid_out.get_edge(f"n{edge.tail}", f"n{edge.head}", f"e{number}"))
            for number, edge in enumerate(graph.edges)
        ),
    )


def _dot(
    graph: Graph, sizes: Mapping[int, tuple[float, float]], rooms: Sequence[int], direction: str
) -> graphviz.Digraph:
    """DOT with empty boxes of the right sizes; numbers of edges reserve their room with an empty table."""
    beside, numbered, plain = _DISTANCES[direction]
    dot = graphviz.Digraph(
        graph_attr={"rankdir": direction, "nodesep": beside, "ranksep": numbered if any(rooms) else plain},
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
    )
    for key, (width, height) in sizes.items():
        dot.node(f"n{key}", width=f"{width / 72:.4f}", height=f"{height / 72:.4f}")
    for number, (edge, room) in enumerate(zip(graph.edges, rooms, strict=True)):
        table = f'<<table border="0" cellborder="0" fixedsize="true" width="{room}" height="16"><tr><td></td></tr></table>>'
        dot.edge(f"n{edge.tail}", f"n{edge.head}", key=f"e{number}", **({"label": table} if room else {}))
    return dot
