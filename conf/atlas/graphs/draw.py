"""Draw a graph as SVG: Graphviz decides where the cards stand, this module what they look like.

The SVG is text (searchable, selectable) in the page's own monospaced font, whose fixed advance makes the cards' widths
predictable. Every colour is a class, defined in ``graph.css``, so that one file serves the light and the dark theme.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import graphviz
import pygraphviz

from .model import Card, Edge, Graph
from .numbers import format_number, format_row, format_shape, format_sum

STYLE = Path(__file__).with_name("graph.css")

_ADVANCE = 0.602  # width of a character of a monospaced font, in ems: DejaVu, Menlo and SF Mono agree
_PADDING = 9
_LINE = 17
_SIZE = {"name": 14.0, "operation": 11.0, "value": 12.5, "numbers": 11.5, "gradient": 12.5, "small": 11.0}
_EDGE_SIZE = 11.5
_COLUMN = 1000
_LONGEST = 44  # characters of a line on a card
_NUMBER = 8  # characters of a number that follows a changed leaf


@dataclass(frozen=True, slots=True)
class _Span:
    text: str
    role: str
    size: float

    @property
    def width(self) -> float:
        return len(self.text) * self.size * _ADVANCE


@dataclass(frozen=True, slots=True)
class _Box:
    """A card ready to be placed: its lines and its size in pixels."""

    card: Card
    lines: tuple[tuple[_Span, ...], ...]
    width: float
    height: float


def draw(graph: Graph, *, show_saved: bool = False, data: str = "") -> str:
    """Return the drawing as a standalone SVG document, with the rules of ``graph.css`` inside.

    Graphviz lays the graph out in this process; no program is started. Sizes are CSS pixels.

    :param show_saved: write on scalar cards too what the node saved; other cards always say so.
    :param data: what the SVG's ``<metadata>`` is to hold for those who show the drawing.
    """
    is_live = graph.program is not None
    boxes = {card.key: _box(card, show_saved=show_saved, is_live=is_live) for card in graph.cards}
    layout = pygraphviz.AGraph(string=_dot(graph, boxes).source)
    layout.layout("dot")
    _, _, width, height = (float(number) for number in layout.graph_attr["bb"].split(","))
    parts = [_edge_svg(number, edge, layout.get_edge(f"n{edge.tail}", f"n{edge.head}", f"e{number}"), height, graph)
             for number, edge in enumerate(graph.edges)]  # fmt: skip
    parts += [_card_svg(boxes[card.key], layout.get_node(f"n{card.key}"), height) for card in graph.cards]
    # a drawing much wider than a page's column is scrolled; shrinking it would make it illegible
    wide = " graph-wide" if width > _COLUMN else ""
    left_out = ""
    if graph.left_out:
        left_out = (
            f'<text class="g-operation" x="4" y="{height + 14:.0f}" font-size="11">… {graph.left_out} more</text>'
        )
        height += 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph{wide}" viewBox="-2 -2 {width + 4:.0f} {height + 4:.0f}" '
        f'width="{width + 4:.0f}" height="{height + 4:.0f}">\n<style>{STYLE.read_text(encoding="utf-8")}</style>\n'
        + (f"<metadata>{escape(data, quote=False)}</metadata>\n" if data else "")
        + "\n".join(parts)
        + left_out
        + "\n</svg>\n"
    )


# --- what stands on a card -----------------------------------------------------------------------


def _box(card: Card, *, show_saved: bool, is_live: bool) -> _Box:
    lines = tuple(tuple(spans) for spans in _lines(card, show_saved=show_saved, is_live=is_live) if spans)
    gap = _SIZE["name"] * _ADVANCE
    width = max(sum(span.width for span in spans) + gap * (len(spans) - 1) for spans in lines)
    if is_live:
        width = max(width, *(_room(card, span) for spans in lines for span in spans))
    width += 2 * _PADDING
    return _Box(card, lines, width, len(lines) * _LINE + 2 * _PADDING - 5)


def _room(card: Card, span: _Span) -> float:
    """How wide a number on a card may become when a leaf is changed, in most cases."""
    longest = {"value": _NUMBER, "numbers": _NUMBER * len(card.numbers) + 2, "gradient": len("grad ") + _NUMBER}
    if card.gradient_numbers and span.role == "gradient":
        return (len("grad ") + _NUMBER * len(card.gradient_numbers)) * span.size * _ADVANCE
    return longest.get(span.role, 0) * span.size * _ADVANCE


def _lines(card: Card, *, show_saved: bool, is_live: bool = False) -> list[list[_Span]]:
    if card.kind == "constant":
        return [[_span("constant", "small")]]
    head = [_span(", ".join(card.names), "name")] if card.names else []
    roles = [*(["leaf"] if card.kind == "leaf" else []), *(["root"] if card.is_root else [])]
    about = " · ".join([*roles, *([card.operation] if card.operation else [])])
    lines = [[*head, _span(about, "operation")] if about else head]
    if card.value is not None:
        lines.append([_span(format_number(card.value), "value")])
    elif card.shape:
        lines.append([_span(f"{format_shape(card.shape)} {card.dtype}", "value")])
        if is_live and card.numbers:
            lines.append([_span(format_row(card.numbers), "numbers")])
    if card.gradient is not None:
        lines.append([_span(f"grad {format_number(card.gradient)}", "gradient")])
        if card.terms:
            lines.append([_span(_sum(card), "small gradient")])
    elif is_live and card.gradient_numbers:
        lines.append([_span(f"grad {format_row(card.gradient_numbers)}", "gradient")])
    elif card.gradient_shape is not None:
        lines.append([_span(f"grad {format_shape(card.gradient_shape)}", "gradient")])
    if card.saved and (show_saved or not card.is_scalar):
        lines += [[_span(f"saved: {text}", "small")] for text in card.saved[:3]]
    return lines


def _span(text: str, role: str) -> _Span:
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return _Span(text, role, _SIZE[role.split()[0]])


def _sum(card: Card) -> str:
    """The terms of a sum over paths, negative ones in brackets; many terms are counted instead of listed."""
    return f"= sum over {len(card.terms)} edges" if len(card.terms) > 4 else f"= {format_sum(card.terms)}"


# --- where it stands -----------------------------------------------------------------------------


def _dot(graph: Graph, boxes: dict[int, _Box]) -> graphviz.Digraph:
    """DOT with empty boxes of the right sizes; edge labels reserve their room with an empty table."""
    labelled = any(_edge_text(edge) for edge in graph.edges)  # a label takes a rank of its own
    dot = graphviz.Digraph(
        graph_attr={"rankdir": "LR", "nodesep": "0.25", "ranksep": "0.2" if labelled else "0.4"},
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
    )
    for box in boxes.values():
        dot.node(f"n{box.card.key}", width=f"{box.width / 72:.4f}", height=f"{box.height / 72:.4f}")
    for number, edge in enumerate(graph.edges):
        room = {}
        text = _edge_text(edge)
        if text:
            width = round(len(text) * _EDGE_SIZE * _ADVANCE) + 6
            room["label"] = (
                f'<<table border="0" cellborder="0" fixedsize="true" width="{width}" height="16"><tr><td></td></tr></table>>'
            )
        dot.edge(f"n{edge.tail}", f"n{edge.head}", key=f"e{number}", **room)
    return dot


def _edge_text(edge: Edge) -> str:
    text = "" if edge.derivative is None else f"× {format_number(edge.derivative)}"
    return f"out {edge.output} {text}".strip() if edge.output else text


# --- SVG -----------------------------------------------------------------------------------------


def _card_svg(box: _Box, node: pygraphviz.Node, height: float) -> str:
    card = box.card
    x, y = (float(number) for number in node.attr["pos"].split(","))
    left, top = x - box.width / 2, height - y - box.height / 2
    kind = "root" if card.is_root else card.kind
    out = [
        f'<g class="g-card g-{kind}" data-card="{card.key}">'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>'
    ]
    for number, spans in enumerate(box.lines):
        at = left + _PADDING
        baseline = top + _PADDING + 9 + number * _LINE
        for span in spans:
            classes = " ".join(f"g-{role}" for role in span.role.split())
            out.append(
                f'<text class="{classes}" x="{at:.1f}" y="{baseline:.1f}" font-size="{span.size:g}">{escape(span.text)}</text>'
            )
            at += span.width + _SIZE["name"] * _ADVANCE
    return "".join([*out, "</g>"])


def _edge_svg(number: int, edge: Edge, laid_out: pygraphviz.Edge, height: float, graph: Graph) -> str:
    kinds = {card.key: card.kind for card in graph.cards}
    tip, points = _spline(laid_out.attr["pos"], height)
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}C" + " ".join(f"{x:.1f},{y:.1f}" for x, y in points[1:])
    classes = "g-edge g-dotted" if kinds[edge.tail] == "constant" else "g-edge"
    out = [
        f'<g class="{classes}" data-edge="{number}" data-from="{edge.tail}" data-to="{edge.head}"><path d="{path}"/>',
        _arrow(points[-1], tip),
    ]
    text = _edge_text(edge)
    if text and laid_out.attr["lp"]:
        x, y = (float(number) for number in laid_out.attr["lp"].split(","))
        out.append(f'<text class="g-gradient" x="{x:.1f}" y="{height - y + 4:.1f}" '
                   f'text-anchor="middle" font-size="{_EDGE_SIZE}">{escape(text)}</text>')  # fmt: skip
    return "".join([*out, "</g>"])


def _spline(pos: str, height: float) -> tuple[tuple[float, float], list[tuple[float, float]]]:
    """The arrow's tip and the Bézier control points of a Graphviz edge, in SVG's downward coordinates."""
    pairs = (point.split(",") for point in pos.removeprefix("e,").split())
    points = [(float(x), height - float(y)) for x, y in pairs]
    return points[0], points[1:]


def _arrow(base: tuple[float, float], tip: tuple[float, float]) -> str:
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    nx, ny = -dy / length * 3.6, dx / length * 3.6
    corners = [tip, (base[0] + nx, base[1] + ny), (base[0] - nx, base[1] - ny)]
    return '<polygon points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in corners) + '"/>'
