"""Draw a graph as SVG: Graphviz says where the cards stand, in this process, and this module what they look like.

The SVG is text (searchable, selectable) in the page's own monospaced font, whose fixed advance makes the cards' widths
predictable. Every color is a class, defined in ``graph.css``, so that one drawing serves the light and the dark theme.

Data flows from left to right, which runs out of a phone's window. Where each part stands when data flows from top to bottom is
in its attribute ``data-upright``, as the value of the attribute that places it: ``upright.js`` puts it there. A drawing that
is too wide for the column of a page is upright from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

try:
    import pygraphviz
except ImportError as error:
    raise ImportError(
        f"Graphviz, which lays out the figures, cannot be loaded: {error}. The wheel of pygraphviz carries Graphviz, and "
        "expects a few libraries that small images of Linux lack. On Debian and Ubuntu: "
        "apt-get install libglib2.0-0 libx11-6 libxext6 libxrender1 libexpat1"
    ) from error

from .describe import describe_gradient, format_number, format_row, format_shape, format_sum
from .model import Card, Edge, Graph

_ADVANCE = 0.602  # width of a character of a monospaced font, in ems: DejaVu, Menlo and SF Mono agree
_PADDING = 9
_LINE = 17
_SIZE = {"name": 14.0, "operation": 11.0, "value": 12.5, "numbers": 11.5, "gradient": 12.5, "small": 11.0}
_GAP = _SIZE["name"] * _ADVANCE
_EDGE_SIZE = 11.5
_COLUMN = 900  # pixels of a drawing that is still legible in a page's column, which is 736 wide
_PHONE = 300  # pixels that any phone has
_LONGEST = 44  # characters of a line on a card
_NUMBER = 8  # characters of a number that follows a changed leaf

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Span:
    text: str
    role: str

    @property
    def size(self) -> float:
        return _SIZE[self.role.split()[0]]

    @property
    def width(self) -> float:
        return len(self.text) * self.size * _ADVANCE


@dataclass(frozen=True, slots=True)
class _Box:
    """A card ready to be placed: its lines and its size in pixels."""

    lines: list[list[_Span]]
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
    parts = [_draw_edge(number, graph, layout, other) for number in range(len(graph.edges))]
    parts += [_draw_card(card, boxes[card.key], layout, other) for card in graph.cards]
    if graph.left_out:
        turned = _turn_upright(f"4 {other.height + 14:.0f}" if other else "")
        at = f'x="4" y="{layout.height + 14:.0f}"{turned} font-size="11"'
        parts.append(f'<text class="g-operation" {at}>… {graph.left_out} more</text>')
    width, height = _measure_picture(layout, graph)
    kinds = ["graph", *(["graph-upright"] if is_upright else ["graph-wide"] if layout.width > _COLUMN else [])]
    # the size of a drawing that stands upright: the one it will have on a phone, or that it has anywhere
    wide, high = _measure_picture(other or layout, graph)
    style = f' style="--upright-width: {wide}px; --upright-ratio: {wide} / {high}"' if other or is_upright else ""
    turned = _turn_upright(f"-2 -2 {wide} {high}" if other else "")
    name = escape(label, quote=False).replace('"', "&quot;")
    return (
        f'<svg role="img" aria-label="{name}"{style} xmlns="http://www.w3.org/2000/svg" class="{" ".join(kinds)}" '
        f'viewBox="-2 -2 {width} {height}" width="{width}" height="{height}"{turned}>'
        "\n" + "\n".join(parts) + "\n</svg>\n"
    )


def arrange_cards(graph: Graph, *, show_saved: bool) -> tuple[dict[int, _Box], Layout, Layout]:
    """The cards ready to be placed, and where they stand from left to right, and from top to bottom."""
    is_live = graph.program is not None
    boxes = {card.key: _make_box(card, show_saved=show_saved, is_live=is_live) for card in graph.cards}
    across, down = (_lay_out(graph, boxes, direction) for direction in ("LR", "TB"))
    return boxes, across, down


def stands_upright(across: Layout, down: Layout) -> bool:
    """Whether the drawing is too wide for a page's column, and is not when data flows from top to bottom."""
    return across.width > _COLUMN >= down.width


def _measure_picture(layout: Layout, graph: Graph) -> tuple[str, str]:
    """Width and height of the picture, with room for its border and for what is said of cards that are left out."""
    return f"{layout.width + 4:.0f}", f"{layout.height + (24 if graph.left_out else 4):.0f}"


# -- What stands on a card ------------------------------------------------------------------------


def shorten_line(text: str) -> str:
    """As much of a line as a card has room for."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _make_box(card: Card, *, show_saved: bool, is_live: bool) -> _Box:
    said = _write_lines(card, show_saved=show_saved, is_live=is_live)
    lines = [[_Span(shorten_line(text), role) for role, text in line] for line in said if line]
    width = max(sum(span.width for span in spans) + _GAP * (len(spans) - 1) for spans in lines)
    if is_live:
        width = max(width, *(_reserve_room(card, span) for spans in lines for span in spans))
    return _Box(lines, width + 2 * _PADDING, len(lines) * _LINE + 2 * _PADDING - 5)


def _reserve_room(card: Card, span: _Span) -> float:
    """How wide a number on a card may become when a leaf is changed, in most cases."""
    gradient = len("grad ") + _NUMBER * (len(card.gradient_numbers) or 1)
    longest = {"value": _NUMBER, "numbers": _NUMBER * len(card.numbers) + 2, "gradient": gradient}
    return longest.get(span.role, 0) * span.size * _ADVANCE


def _write_lines(card: Card, *, show_saved: bool, is_live: bool) -> list[list[tuple[str, str]]]:
    """The lines of a card, each of parts with their roles."""
    if card.kind == "constant":
        return [[("small", "constant")]]
    head = [("name", ", ".join(card.names))] if card.names else []
    about = [*(["leaf"] if card.kind == "leaf" else []), *(["root"] if card.is_root else []), card.operation]
    words = " · ".join(filter(None, about))
    lines = [[*head, ("operation", words)] if words else head]
    if card.value is not None:
        lines.append([("value", format_number(card.value))])
    elif card.shape:
        lines.append([("value", f"{format_shape(card.shape)} {card.dtype}")])
        if is_live and card.numbers:
            lines.append([("numbers", format_row(card.numbers))])
    gradient = describe_gradient(card)
    if card.gradient_numbers and not is_live:
        gradient = format_shape(card.gradient_shape or ())
    if gradient:
        lines.append([("gradient", f"grad {gradient}")])
    if card.terms:
        lines.append([("small gradient", _write_sum(card))])
    if card.saved and (show_saved or not card.is_scalar):
        lines += [[("small", f"saved: {text}")] for text in card.saved[:3]]
    return lines


def _write_sum(card: Card) -> str:
    """The terms of a sum over paths, negative ones in brackets; many terms are counted instead of listed."""
    return f"= sum over {len(card.terms)} edges" if len(card.terms) > 4 else f"= {format_sum(card.terms)}"


# -- SVG ------------------------------------------------------------------------------------------


def _turn_upright(place: str) -> str:
    return f' data-upright="{place}"' if place else ""


def _write_factor(edge: Edge) -> str:
    text = "" if edge.derivative is None else f"× {format_number(edge.derivative)}"
    return f"out {edge.output} {text}".strip() if edge.output else text


def _draw_card(card: Card, box: _Box, layout: Layout, other: Layout | None) -> str:
    x, y = layout.cards[card.key]
    left, top = x - box.width / 2, y - box.height / 2
    turned = ""
    if other:
        there = other.cards[card.key]
        turned = _turn_upright(f"translate({there[0] - x:.0f} {there[1] - y:.0f})")
    out = [
        f'<g class="g-card g-{"root" if card.is_root else card.kind}" data-card="{card.key}"{turned}>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>'
    ]
    for number, spans in enumerate(box.lines):
        at = left + _PADDING
        baseline = top + _PADDING + 9 + number * _LINE
        for span in spans:
            classes = " ".join(f"g-{role}" for role in span.role.split())
            place = f'x="{at:.1f}" y="{baseline:.1f}" font-size="{span.size:g}"'
            out.append(f'<text class="{classes}" {place}>{escape(span.text)}</text>')
            at += span.width + _GAP
    return "".join([*out, "</g>"])


def _draw_edge(number: int, graph: Graph, layout: Layout, other: Layout | None) -> str:
    edge, route, there = graph.edges[number], layout.edges[number], other.edges[number] if other else None
    is_dotted = any(card.key == edge.tail and card.kind == "constant" for card in graph.cards)
    out = [
        f'<g class="g-edge{" g-dotted" if is_dotted else ""}" '
        f'data-edge="{number}" data-from="{edge.tail}" data-to="{edge.head}">'
        f'<path d="{_draw_line(route, 1)}"{_turn_upright(_draw_line(there, 0) if there else "")}/>'
        f'<polygon points="{_draw_arrow(route)}"{_turn_upright(_draw_arrow(there) if there else "")}/>'
    ]
    text = _write_factor(edge)
    if text and route.label:
        x, y = route.label
        beside = _turn_upright(f"{there.label[0]:.0f} {there.label[1] + 4:.0f}" if there and there.label else "")
        place = f'x="{x:.1f}" y="{y + 4:.1f}"{beside} text-anchor="middle" font-size="{_EDGE_SIZE}"'
        out.append(f'<text class="g-gradient" {place}>{escape(text)}</text>')
    return "".join([*out, "</g>"])


def _draw_line(route: Route, digits: int) -> str:
    (x, y), *others = route.points
    return f"M{x:.{digits}f},{y:.{digits}f}C" + " ".join(f"{x:.{digits}f},{y:.{digits}f}" for x, y in others)


def _draw_arrow(route: Route) -> str:
    """The corners of an arrow's head, the tip first."""
    base, tip = route.points[-1], route.tip
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    nx, ny = -dy / length * 3.6, dx / length * 3.6
    corners: list[Point] = [tip, (base[0] + nx, base[1] + ny), (base[0] - nx, base[1] - ny)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


# -- Graphviz -------------------------------------------------------------------------------------

#: Distances in inches between cards of a rank, and between ranks: with numbers on the edges, which take a rank of their own,
#: and without. A phone has little room side by side.
_DISTANCES = {"LR": (0.25, 0.2, 0.4), "TB": (0.12, 0.12, 0.3)}


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


def _lay_out(graph: Graph, boxes: Mapping[int, _Box], direction: str) -> Layout:
    """Lay a graph out from left to right (``LR``) or from top to bottom (``TB``): empty boxes of the right sizes.

    A number on an edge reserves its room with an empty table.
    """
    texts = [_write_factor(edge) for edge in graph.edges]
    beside, numbered, plain = _DISTANCES[direction]
    lines = [f"rankdir={direction} nodesep={beside} ranksep={numbered if any(texts) else plain}"]
    lines.append('node [shape=box fixedsize=true label=""]')
    for key, box in boxes.items():
        lines.append(f"n{key} [width={box.width / 72:.4f} height={box.height / 72:.4f}]")
    for number, (edge, text) in enumerate(zip(graph.edges, texts, strict=True)):
        room = f'border="0" cellborder="0" fixedsize="true" width="{round(len(text) * _EDGE_SIZE * _ADVANCE) + 6}" height="16"'
        label = f" label=<<table {room}><tr><td></td></tr></table>>" if text else ""
        lines.append(f"n{edge.tail} -> n{edge.head} [key=e{number}{label}]")
    found = pygraphviz.AGraph(string="digraph {\n" + "\n".join(lines) + "\n}")
    found.layout("dot")
    _, _, width, height = (float(number) for number in found.graph_attr["bb"].split(","))

    def read_point(pair: str) -> Point:
        x, y = pair.split(",")
        return float(x), height - float(y)

    def read_route(edge: pygraphviz.Edge) -> Route:
        tip, *points = (read_point(pair) for pair in edge.attr["pos"].removeprefix("e,").split())
        return Route(tuple(points), tip, read_point(edge.attr["lp"]) if edge.attr["lp"] else None)

    cards = {card.key: read_point(found.get_node(f"n{card.key}").attr["pos"]) for card in graph.cards}
    edges = (
        read_route(found.get_edge(f"n{edge.tail}", f"n{edge.head}", f"e{number}"))
        for number, edge in enumerate(graph.edges)
    )
    return Layout(width, height, cards, tuple(edges))
