"""Draw a graph as SVG: Graphviz says where the cards stand, in this process, and this module what they look like.

The SVG is text (searchable, selectable) in the page's own monospaced font, whose fixed advance makes the cards' widths
predictable. Every color is a class, defined in ``graph.css``, so that one drawing serves the light and the dark theme.

Data flows from left to right, which runs out of a phone's window. Where each part stands when data flows from top to bottom is
in its attribute ``data-upright``, as the value of the attribute that places it: ``upright.js`` puts it there. A drawing that
is too wide for the column of a page is upright from the beginning.

On cards and shared links a graph has a small picture: its cards and edges where the large drawing has them, with the names of
tensors and nothing else, since the drawing itself, shown small, has text of four pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from typing import NamedTuple

try:
    import pygraphviz
except ImportError as error:
    raise ImportError(
        f"Graphviz, which lays out the figures, cannot be loaded: {error}. Small images of Linux lack some libraries. "
        "On Debian and Ubuntu: apt-get install libglib2.0-0 libx11-6 libxext6 libxrender1 libexpat1"
    ) from error

from .describe import describe_gradient, format_number, format_row, format_shape, format_sum
from .model import Card, Edge, Graph

_ADVANCE = 0.602  # width of a character of a monospaced font, in ems: DejaVu, Menlo and SF Mono agree
_PADDING = 9
_LINE, _LINE_OF_FIELDS = 17, 20
_SIZE = {"name": 14.0, "operation": 12.0, "value": 12.5, "numbers": 12.0, "gradient": 12.5}
_SIZE |= {"small": 12.0, "small gradient": 12.0, "gradient alarm": 12.5}
_GAP = _SIZE["name"] * _ADVANCE
_EDGE_SIZE = 12.0
_COLUMN = 904  # pixels that a figure has in a window of 1280
_PHONE = 300  # pixels that any phone has
_LONGEST = 44  # characters of a line on a card
_NUMBER = 8  # characters of a number that follows a changed leaf

Point = tuple[float, float]


class _Box(NamedTuple):
    """A card ready to be placed: its lines, each of parts with their roles, its size and that of a line in pixels."""

    lines: list[list[tuple[str, str]]]
    width: float
    height: float
    line: int


class Route(NamedTuple):
    """An edge: the Bézier control points of its line, the tip of its arrow, and the middle of its number, if it has one."""

    points: list[Point]
    tip: Point
    label: Point | None


class Layout(NamedTuple):
    """Pixels, downward as in SVG: the size of all, the middle of each card, and the edges in the order of the graph's."""

    width: float
    height: float
    cards: Mapping[int, Point]
    edges: list[Route]


def draw_graph(graph: Graph, *, label: str = "", show_saved: bool = False) -> str:
    """Return the drawing as an element ``<svg>`` for a page that has the rules of ``graph.css``. Sizes are CSS pixels.

    :param label: its name, for those who cannot see it.
    :param show_saved: write on scalar cards too what the node saved; other cards always say so.
    """
    boxes, across, down, is_upright = _arrange_cards(graph, show_saved=show_saved)
    layout = down if is_upright else across
    other = None if is_upright or down.width >= across.width or across.width <= _PHONE else down
    parts = [_draw_edge(number, graph, layout, other) for number in range(len(graph.edges))]
    parts += [_draw_card(card, boxes[card.key], layout, other) for card in graph.cards]
    if graph.left_out:
        turned = _turn_upright(f"4 {other.height + 14:.0f}" if other else "")
        at = f'x="4" y="{layout.height + 14:.0f}"{turned} font-size="12"'
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


def _arrange_cards(graph: Graph, *, show_saved: bool) -> tuple[dict[int, _Box], Layout, Layout, bool]:
    """The cards ready to be placed, and where they stand from left to right, and from top to bottom.

    The last says whether the drawing is too wide for a page's column, and is not when data flows from top to bottom.
    """
    is_live = graph.program is not None
    boxes = {card.key: _make_box(card, show_saved=show_saved, is_live=is_live) for card in graph.cards}
    across, down = _lay_out(graph, boxes, "LR"), _lay_out(graph, boxes, "TB")
    return boxes, across, down, across.width > _COLUMN >= down.width


def _measure_picture(layout: Layout, graph: Graph) -> tuple[str, str]:
    """Width and height of the picture, with room for its border and for what is said of cards that are left out."""
    return f"{layout.width + 4:.0f}", f"{layout.height + (24 if graph.left_out else 4):.0f}"


# -- What stands on a card ------------------------------------------------------------------------


def _shorten_line(text: str) -> str:
    """As much of a line as a card has room for."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _measure_text(role: str, characters: int) -> float:
    return characters * _SIZE[role] * _ADVANCE


def _make_box(card: Card, *, show_saved: bool, is_live: bool) -> _Box:
    said = write_lines(card, show_saved=show_saved, is_live=is_live)
    lines = [[(role, _shorten_line(text)) for role, text in line] for line in said]
    width = max(sum(_measure_text(role, len(text)) for role, text in line) + _GAP * (len(line) - 1) for line in lines)
    if is_live:  # how wide a number may become when a leaf is changed, in most cases
        gradient = len("grad ") + _NUMBER * (len(card.gradient_numbers) or 1)
        longest = {"value": _NUMBER, "numbers": _NUMBER * len(card.numbers) + 2, "gradient": gradient}
        roles = {role for line in lines for role, _text in line}
        width = max(width, *(_measure_text(role, longest.get(role, 0)) for role in roles))
    line_height = _LINE_OF_FIELDS if is_live and card.kind == "leaf" else _LINE
    return _Box(lines, width + 2 * _PADDING, len(lines) * line_height + 2 * _PADDING - 5, line_height)


def write_lines(card: Card, *, show_saved: bool, is_live: bool) -> list[list[tuple[str, str]]]:
    """The lines of a card, each of parts with their roles."""
    if card.kind == "constant":
        return [[("small", "constant")]]
    head = [("name", ", ".join(card.names))] if card.names else []
    about = ["leaf" if card.kind == "leaf" else "", "root" if card.is_root else "", card.operation]
    words = " · ".join(filter(None, about))
    lines = [[*head, ("operation", words)] if words else head]
    if card.value is not None:
        lines.append([("value", format_number(card.value))])
    elif card.shape:
        lines.append([("value", f"{format_shape(card.shape)} {card.dtype}")])
        if is_live and card.numbers:
            lines.append([("numbers", format_row(card.numbers))])
    numbers = card.gradient_numbers and not is_live
    is_short = numbers and card.gradient_norm is None and not card.alarm
    gradient = format_shape(card.gradient_shape or ()) if is_short else describe_gradient(card)
    if gradient:
        lines.append([("gradient alarm", f"✗ grad {gradient}") if card.alarm else ("gradient", f"grad {gradient}")])
    if card.terms:  # many are counted instead of listed
        many = f"sum over {len(card.terms)} edges" if len(card.terms) > 4 else format_sum(card.terms)
        lines.append([("small gradient", f"= {many}")])
    if card.saved and (show_saved or card.shape != ()):
        lines += [[("small", f"saved: {text}")] for text in card.saved[:3]]
    return lines


# -- SVG ------------------------------------------------------------------------------------------


def _turn_upright(place: str) -> str:
    return f' data-upright="{place}"' if place else ""


def write_factor(edge: Edge) -> str:
    text = "" if edge.derivative is None else f"× {format_number(edge.derivative)}"
    return f"out {edge.output} {text}".strip() if edge.output else text


def _draw_card(card: Card, box: _Box, layout: Layout, other: Layout | None) -> str:
    x, y = layout.cards[card.key]
    left, top = x - box.width / 2, y - box.height / 2
    there = other.cards[card.key] if other else (x, y)
    turned = _turn_upright(f"translate({there[0] - x:.0f} {there[1] - y:.0f})" if other else "")
    marks = (f" g-tint-{card.tint}" if card.tint else "") + (" g-alarm-card" if card.alarm else "")
    out = (
        f'<g class="g-card g-{"root" if card.is_root else card.kind}{marks}" data-card="{card.key}"{turned}>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="7"/>'
    )
    for number, line in enumerate(box.lines):
        at, baseline = left + _PADDING, top + _PADDING + 9 + number * box.line
        for role, text in line:
            place = f'x="{at:.1f}" y="{baseline:.1f}" font-size="{_SIZE[role]:g}"'
            out += f'<text class="g-{role.replace(" ", " g-")}" {place}>{escape(text)}</text>'
            at += _measure_text(role, len(text)) + _GAP
    return out + "</g>"


def _draw_edge(number: int, graph: Graph, layout: Layout, other: Layout | None) -> str:
    edge, route, there = graph.edges[number], layout.edges[number], other.edges[number] if other else None
    is_dotted = any(card.key == edge.tail and card.kind == "constant" for card in graph.cards)
    out = (
        f'<g class="g-edge{" g-dotted" if is_dotted else ""}" '
        f'data-edge="{number}" data-from="{edge.tail}" data-to="{edge.head}">'
        f'<path d="{_draw_line(route, 1)}"{_turn_upright(_draw_line(there, 0) if there else "")}/>'
        f'<polygon points="{_draw_arrow(route)}"{_turn_upright(_draw_arrow(there) if there else "")}/>'
    )
    text = write_factor(edge)
    if text and route.label:
        x, y = route.label
        beside = _turn_upright(f"{there.label[0]:.0f} {there.label[1] + 4:.0f}" if there and there.label else "")
        place = f'x="{x:.1f}" y="{y + 4:.1f}"{beside} text-anchor="middle" font-size="{_EDGE_SIZE}"'
        out += f'<text class="g-gradient" {place}>{escape(text)}</text>'
    return out + "</g>"


def _draw_line(route: Route, digits: int) -> str:
    (x, y), *others = route.points
    return f"M{x:.{digits}f},{y:.{digits}f}C" + " ".join(f"{x:.{digits}f},{y:.{digits}f}" for x, y in others)


def _draw_arrow(route: Route) -> str:
    """The corners of an arrow's head, the tip first."""
    base, tip = route.points[-1], route.tip
    dx, dy = tip[0] - base[0], tip[1] - base[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    nx, ny = -dy / length * 3.6, dx / length * 3.6
    corners = (tip, (base[0] + nx, base[1] + ny), (base[0] - nx, base[1] - ny))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


# -- Graphviz -------------------------------------------------------------------------------------

#: Distances in inches between cards of a rank, and between ranks: with numbers on the edges, which take a rank of their own,
#: and without. A phone has little room side by side.
_DISTANCES = {"LR": (0.25, 0.18, 0.36), "TB": (0.12, 0.12, 0.3)}


def _lay_out(graph: Graph, boxes: Mapping[int, _Box], direction: str) -> Layout:
    """Lay a graph out from left to right (``LR``) or from top to bottom (``TB``): empty boxes of the right sizes.

    A number on an edge reserves its room with an empty table.
    """
    texts = [write_factor(edge) for edge in graph.edges]
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
        return Route(points, tip, read_point(edge.attr["lp"]) if edge.attr["lp"] else None)

    cards = {card.key: read_point(found.get_node(f"n{card.key}").attr["pos"]) for card in graph.cards}
    ends = [(f"n{edge.tail}", f"n{edge.head}", f"e{number}") for number, edge in enumerate(graph.edges)]
    return Layout(width, height, cards, [read_route(found.get_edge(*one)) for one in ends])


# -- A small picture ------------------------------------------------------------------------------
# Names stay as long as there is room for them: first those of all cards, else those of leaves and roots, else none, and the
# picture shows the shape alone.

WIDTH, HEIGHT = 224, 96
_LETTER = 7.3  # width of a monospaced letter of 12 px
_BORDER, _APART = 2, 6
_SHORTEST = 10  # of an edge, from left to right


class _Place(NamedTuple):
    x: float
    y: float
    wide: float
    high: float


def draw_picture(graph: Graph, *, show_saved: bool = False) -> str:
    """The picture, for an element of class ``graph``."""
    _boxes, across, down, is_upright = _arrange_cards(graph, show_saved=show_saved)
    # every graph lies here
    centers = {key: (y, x) for key, (x, y) in down.cards.items()} if is_upright else across.cards
    all_names = {card.key: _shorten_line(", ".join(card.names)) for card in graph.cards}
    ends = {card.key for card in graph.cards if card.kind == "leaf" or card.is_root}
    for names in (all_names, {key: name for key, name in all_names.items() if key in ends}, {}):
        boxes = _place_boxes(centers, names)
        if not _is_crowded(boxes, graph.edges):
            break
    kinds = {card.key: "root" if card.is_root else card.kind for card in graph.cards}
    parts = [_draw_arc(boxes[edge.tail], boxes[edge.head], kinds[edge.tail] == "constant") for edge in graph.edges]
    parts += [_draw_spot(box, kinds[key], names.get(key, "")) for key, box in boxes.items()]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def _place_boxes(centers: Mapping[int, Point], names: Mapping[int, str]) -> dict[int, _Place]:
    """The cards spread over the whole picture: columns as they were, side by side."""
    wide = [len(names[key]) * _LETTER + 12 if names.get(key) else 18.0 for key in centers]
    high = [22.0 if names.get(key) else 12.0 for key in centers]
    across = _spread_cards([x for x, _y in centers.values()], wide, WIDTH)
    down = _spread_cards([y for _x, y in centers.values()], high, HEIGHT)
    return {key: _Place(*box) for key, *box in zip(centers, across, down, wide, high, strict=True)}


def _spread_cards(centers: Sequence[float], sizes: Sequence[float], room: float) -> list[float]:
    """New centers of cards between 0 and ``room``.

    >>> _spread_cards([100.0, 500.0], [20.0, 20.0], 100)
    [12.0, 88.0]
    """
    least, most = min(centers), max(centers)
    if most == least:
        return [room / 2] * len(centers)
    cards = list(zip(centers, sizes, strict=True))
    first = max(size for center, size in cards if center == least) / 2 + _BORDER
    last = room - max(size for center, size in cards if center == most) / 2 - _BORDER
    spread = ((first + (center - least) / (most - least) * (last - first), size) for center, size in cards)
    return [min(max(one, size / 2 + _BORDER), room - size / 2 - _BORDER) for one, size in spread]


def _is_crowded(boxes: Mapping[int, _Place], edges: Sequence[Edge]) -> bool:
    """Whether cards touch, or an edge is too short."""

    def cards_touch(one: _Place, other: _Place) -> bool:
        is_near = abs(one.x - other.x) < (one.wide + other.wide) / 2 + _APART
        return is_near and abs(one.y - other.y) < (one.high + other.high + _APART) / 2

    ends = [(boxes[edge.tail], boxes[edge.head]) for edge in edges]
    is_short = any(head.x - head.wide / 2 - tail.x - tail.wide / 2 < _SHORTEST for tail, head in ends)
    return is_short or any(cards_touch(*pair) for pair in combinations(boxes.values(), 2))


def _draw_arc(start: _Place, end: _Place, is_dotted: bool) -> str:
    (x1, y1), (x2, y2) = (start.x + start.wide / 2, start.y), (end.x - end.wide / 2, end.y)
    bend = (x2 - x1) / 2
    curve = f"C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2 - 5:.0f},{y2:.0f}"
    head = f'<polygon points="{x2:.0f},{y2:.0f} {x2 - 6:.0f},{y2 - 3:.0f} {x2 - 6:.0f},{y2 + 3:.0f}"/>'
    return f'<g class="g-edge{" g-dotted" if is_dotted else ""}"><path d="M{x1:.0f},{y1:.0f}{curve}"/>{head}</g>'


def _draw_spot(box: _Place, kind: str, name: str) -> str:
    said = escape(name, quote=False)
    text = f'<text class="g-name" x="{box.x:.0f}" y="{box.y + 4:.0f}">{said}</text>' if name else ""
    at = f'x="{box.x - box.wide / 2:.0f}" y="{box.y - box.high / 2:.0f}"'
    size = f'width="{box.wide:.0f}" height="{box.high:.0f}"'
    return f'<g class="g-card g-{kind}"><rect {at} {size} rx="{4 if name else 3}"/>{text}</g>'
