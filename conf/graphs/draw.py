"""Draw a graph as SVG: ``layout`` says where the cards stand, this module what they look like.

The SVG is text (searchable, selectable) in the page's own monospaced font, whose fixed advance makes the cards' widths
predictable. Every color is a class, defined in ``graph.css``, so that one drawing serves the light and the dark theme.

Data flows from left to right, which runs out of a phone's window. Where each part stands when data flows from top to bottom is
in its attribute ``data-upright``, as the value of the attribute that places it: ``upright.js`` puts it there. A drawing that
is too wide for the column of a page is upright from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from graphs.model import Card, Edge, Graph
from graphs.numbers import format_number, format_row, format_shape, format_sum

from .layout import Layout, Point, Route, lay_out

_ADVANCE = 0.602  # width of a character of a monospaced font, in ems: DejaVu, Menlo and SF Mono agree
_PADDING = 9
_LINE = 17
_SIZE = {"name": 14.0, "operation": 11.0, "value": 12.5, "numbers": 11.5, "gradient": 12.5, "small": 11.0}
_EDGE_SIZE = 11.5
_COLUMN = 900  # pixels of a drawing that is still legible in a page's column, which is 736 wide
_PHONE = 300  # pixels that any phone has
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


def draw_graph(graph: Graph, *, label: str = "", show_saved: bool = False) -> str:
    """Return the drawing as an element ``<svg>`` for a page that has the rules of ``graph.css``. Sizes are CSS pixels.

    :param label: its name, for those who cannot see it.
    :param show_saved: write on scalar cards too what the node saved; other cards always say so.
    """
    boxes, across, down = arrange_cards(graph, show_saved=show_saved)
    is_upright = stands_upright(across, down)
    layout = down if is_upright else across
    other = None if is_upright or down.width >= across.width or across.width <= _PHONE else down
    parts = [_edge_svg(number, edge, graph, layout, other) for number, edge in enumerate(graph.edges)]
    parts += [_card_svg(boxes[card.key], layout, other) for card in graph.cards]
    if graph.left_out:
        x, y = 4, layout.height + 14
        turned = f' data-upright="{x} {other.height + 14:.0f}"' if other else ""
        said = f"… {graph.left_out} more"
        parts.append(f'<text class="g-operation" x="{x}" y="{y:.0f}"{turned} font-size="11">{said}</text>')
    width, height = _size(layout, graph)
    turned = f' data-upright="-2 -2 {" ".join(_size(other, graph))}"' if other else ""
    kinds = ["graph", *(["graph-upright"] if is_upright else ["graph-wide"] if layout.width > _COLUMN else [])]
    # the size of a drawing that stands upright: the one it will have on a phone, or that it has anywhere
    upright = _size(other, graph) if other else (width, height) if is_upright else None
    style = (
        f' style="--upright-width: {upright[0]}px; --upright-ratio: {upright[0]} / {upright[1]}"' if upright else ""
    )
    name = escape(label, quote=False).replace('"', "&quot;")
    return (
        f'<svg role="img" aria-label="{name}"{style} xmlns="http://www.w3.org/2000/svg" class="{" ".join(kinds)}" '
        f'viewBox="-2 -2 {width} {height}" width="{width}" height="{height}"{turned}>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def arrange_cards(graph: Graph, *, show_saved: bool) -> tuple[dict[int, _Box], Layout, Layout]:
    """The cards ready to be placed, and where they stand from left to right, and from top to bottom."""
    is_live = graph.program is not None
    boxes = {card.key: _box(card, show_saved=show_saved, is_live=is_live) for card in graph.cards}
    sizes = {key: (box.width, box.height) for key, box in boxes.items()}
    rooms = [
        round(len(text) * _EDGE_SIZE * _ADVANCE) + 6 if (text := _edge_text(edge)) else 0 for edge in graph.edges
    ]
    across, down = (lay_out(graph, sizes, rooms, direction) for direction in ("LR", "TB"))
    return boxes, across, down


def stands_upright(across: Layout, down: Layout) -> bool:
    """Whether the drawing is too wide for a page's column, and is not when data flows from top to bottom."""
    return across.width > _COLUMN >= down.width


def _size(layout: Layout, graph: Graph) -> tuple[str, str]:
    """Width and height of the picture, with room for its border and for what is said of cards that are left out."""
    return f"{layout.width + 4:.0f}", f"{layout.height + (24 if graph.left_out else 4):.0f}"


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
    return _Span(shorten_line(text), role, _SIZE[role.split()[0]])


def shorten_line(text: str) -> str:
    """As much of a line as a card has room for."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _sum(card: Card) -> str:
    """The terms of a sum over paths, negative ones in brackets; many terms are counted instead of listed."""
    return f"= sum over {len(card.terms)} edges" if len(card.terms) > 4 else f"= {format_sum(card.terms)}"


# --- SVG -----------------------------------------------------------------------------------------


def _edge_text(edge: Edge) -> str:
    text = "" if edge.derivative is None else f"× {format_number(edge.derivative)}"
    return f"out {edge.output} {text}".strip() if edge.output else text


def _card_svg(box: _Box, layout: Layout, other: Layout | None) -> str:
    card = box.card
    x, y = layout.cards[card.key]
    left, top = x - box.width / 2, y - box.height / 2
    kind = "root" if card.is_root else card.kind
    turned = ""
    if other:
        there = other.cards[card.key]
        turned = f' data-upright="translate({there[0] - x:.0f} {there[1] - y:.0f})"'
    out = [
        f'<g class="g-card g-{kind}" data-card="{card.key}"{turned}>'
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


def _edge_svg(number: int, edge: Edge, graph: Graph, layout: Layout, other: Layout | None) -> str:
    kinds = {card.key: card.kind for card in graph.cards}
    route, there = layout.edges[number], other.edges[number] if other else None
    classes = "g-edge g-dotted" if kinds[edge.tail] == "constant" else "g-edge"

    def turned(value: str) -> str:
        return f' data-upright="{value}"'

    out = [
        f'<g class="{classes}" data-edge="{number}" data-from="{edge.tail}" data-to="{edge.head}">'
        f'<path d="{_line(route, 1)}"{turned(_line(there, 0)) if there else ""}/>',
        f'<polygon points="{_arrow(route)}"{turned(_arrow(there)) if there else ""}/>',
    ]
    text = _edge_text(edge)
    if text and route.label:
        x, y = route.label
        beside = turned(f"{there.label[0]:.0f} {there.label[1] + 4:.0f}") if there and there.label else ""
        out.append(f'<text class="g-gradient" x="{x:.1f}" y="{y + 4:.1f}"{beside} '
                   f'text-anchor="middle" font-size="{_EDGE_SIZE}">{escape(text)}</text>')  # fmt: skip
    return "".join([*out, "</g>"])


def _line(route: Route, digits: int) -> str:
    (x, y), *others = route.points
    return f"M{x:.{digits}f},{y:.{digits}f}C" + " ".join(f"{x:.{digits}f},{y:.{digits}f}" for x, y in others)


def _arrow(route: Route) -> str:
    """The corners of an arrow's head, the tip first."""
    base, tip = route.points[-1], route.tip
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    nx, ny = -dy / length * 3.6, dx / length * 3.6
    corners: list[Point] = [tip, (base[0] + nx, base[1] + ny), (base[0] - nx, base[1] - ny)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
