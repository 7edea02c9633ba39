"""The directives ``graph-figure`` and ``plot-figure``: drawings that stand in the page as SVG, in the colors of the theme.

A drawing is no image file, so that its text can be searched and selected. A graph is drawn here from its data; of matplotlib's
drawings the colors are made the theme's, for a page, and for the small picture on a card.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import quoteattr

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from atlas.folds import make_details
from atlas.gallery import sphinx_gallery_patches
from atlas.gallery.requests import without_requests
from atlas.gallery.visible_code import show_code
from atlas.page_store import connect_for_pages
from drawgrad.describe import TITLES, describe_graph
from drawgrad.model import Graph, graph_from_dict
from drawgrad.play import describe_play
from drawgrad.player import json_for_script, write_player
from drawgrad.rules import RULES, write_javascript


def _read_source(directive: SphinxDirective, what: str) -> tuple[str, str]:
    """The name, without its end, and the text of the file in the directive's argument; the page depends on it.

    :param what: whose drawing it is, for the message.
    :raises docutils.parsers.rst.DirectiveError: if it cannot be read; it names file and line.
    """
    relative, absolute = directive.env.relfn2path(directive.arguments[0])
    directive.env.note_dependency(relative)
    path = Path(absolute)
    try:
        return path.name.partition(".")[0], path.read_text(encoding="utf-8")
    except OSError as error:
        found = f"{error.strerror}: {directive.arguments[0]}"
        raise directive.error(f"cannot read the {what}'s drawing: {found}") from None


def _shorten(name: str) -> str:
    """Of the file ``sphx_glr_first_graph_002``: ``first-graph-2``."""
    return re.sub(r"[^a-z0-9]+0*", "-", name.removeprefix("sphx_glr_").lower())


def link_to_figure(page: str, name: str) -> nodes.raw:
    """A link to ``figure.html``, which shows the figure ``name`` of a page alone: to save it, to link to it, for slides.

    ``conf/static/figure_page.js`` fills that page.
    """
    address = f"{'../' * page.count('/')}figure.html?{page}.html#{name}"
    return nodes.raw("", f'<a class="figure-alone" href="{address}">Save or link this figure</a>', format="html")


# -- Graphs ---------------------------------------------------------------------------------------


class GraphFigure(SphinxDirective):
    """``.. graph-figure:: /path/from/the/source/folder.graph.json``

    ``:title:`` says what to see. ``:table:`` puts the graph's table below it; a page that repeats a figure does without.
    The examples' scraper writes this directive; a page under ``docs/`` may show an example's figure with it.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"title": directives.unchanged_required, "table": directives.flag}

    def run(self) -> list[nodes.Node]:
        try:
            from drawgrad.drawing import draw_graph  # Graphviz takes a moment to load, and a build may read no figure
        except ImportError as error:
            raise self.error(str(error)) from None
        title = self.options.get("title")
        if not title:
            raise self.error("a graph figure needs a :title: that says what to see in it")
        name, text = _read_source(self, "graph")
        try:
            graph, made_by, show_saved = parse_graph(text)
        except (ValueError, LookupError, TypeError):
            raise self.error(f"{self.arguments[0]} is no graph; a plot has a plot-figure") from None
        # an id that a reader can put into a link: graph-first-graph-2
        name = "graph-" + _shorten(name)
        data = describe_play(graph, made_by)
        svg = draw_graph(graph, label=nodes.unescape(title), show_saved=show_saved)
        shown = f'<div id="{name}"><div class="graph-scroll">{svg}</div>{write_player(name, data)}</div>'
        figure = nodes.figure("", classes=["graph-figure"])
        figure += nodes.raw("", shown, format="html", **{_MADE_BY: made_by})
        figure += nodes.caption(title, title)
        self.set_source_info(figure)
        legend = nodes.legend("", link_to_figure(self.env.docname, name))
        if graph.left_out:
            sentence = f"The graph is too large to draw: {graph.left_out} of its cards are left out."
            legend += nodes.paragraph(sentence, sentence)
        if "table" in self.options:
            legend += make_details("The graph as a table", _make_table(describe_graph(graph)))
        figure += legend
        return [figure]


def parse_graph(text: str) -> tuple[Graph, dict[str, list[Any]], bool]:
    """What the scraper wrote of a figure: the graph, the lines that made its cards, and whether to show what was saved.

    :raises ValueError, LookupError, TypeError: if ``text`` is something else.
    """
    data = json.loads(text)
    return graph_from_dict(data["graph"]), data["made_by"], data["show_saved"]


def _make_table(rows: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup(cols=len(TITLES))
    group += [nodes.colspec(colwidth=1) for _title in TITLES]
    group += nodes.thead("", _make_row(TITLES))
    group += nodes.tbody("", *[_make_row(row) for row in rows])
    return nodes.table("", group, classes=["graph-table"])


def _make_row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", nodes.Text(cell))) for cell in cells])


# -- The line that made a card --------------------------------------------------------------------
# graph_code.js lights it when the card is pointed at. The data know the lines of the script. What a page shows of the script
# lacks what is hidden, so its lines are numbered again, as they stand in their blocks.

_MADE_BY = "made_by"
_SOURCE = "GENERATED FROM PYTHON SOURCE LINES "
_MARK = "\0"
_PROMPT = ">>> "

Place = tuple[nodes.Element, int]
"""A line of a block of the page, counted from 1."""


def tie_lines(app: Sphinx, doctree: nodes.document) -> None:
    """Write below each figure where on the page its lines are. Where it stands on another page than that of its script, or was
    recorded before lines of the script moved, a line is lit that says the same. Connected to ``doctree-read``, after
    ``hide_requests``."""
    drawings = [raw for raw in doctree.findall(nodes.raw) if raw.get(_MADE_BY)]
    if not drawings:
        return
    script = Path(app.env.doc2path(app.env.docname)).with_suffix(".py")
    is_example = app.env.docname.startswith("gallery/") and script.exists()
    lines: dict[int | str, Place] = {**_find_lines_said_once(doctree)}
    if is_example:
        lines |= _find_lines_of_script(doctree, script)
    lit: list[nodes.Element] = []
    for drawing in drawings:
        found = {}
        for key, (text, *numbers) in drawing[_MADE_BY].items():
            begin, end = map(lines.get, numbers)
            if not begin or not _read_line(*begin).startswith(text.removesuffix(" …")):
                begin = end = lines.get(text)
            if begin and end and begin[0] is end[0]:
                block = begin[0]
                if block not in lit:
                    lit.append(block)
                    block["ids"].append(f"cell-{len(lit)}")
                found[key] = [block["ids"][-1], begin[1], end[1]]
        if found:
            data = nodes.raw("", json_for_script({_MADE_BY: found}), format="html")
            drawing.parent.insert(drawing.parent.index(drawing) + 1, data)


def _read_line(block: nodes.Element, number: int) -> str:
    return block.astext().split("\n")[number - 1].strip()


def _find_lines_of_script(doctree: nodes.document, script: Path) -> dict[int, Place]:
    """For each line of code of the script that the page shows, where it stands."""
    cells = sphinx_gallery_patches.read_code_cells(script)
    return {
        number: (block, place)
        for first, block in _find_cells(doctree)
        for place, number in enumerate(number_lines(cells.get(first, ""), first, block.astext()), 1)
        if number
    }


def _find_cells(doctree: nodes.document) -> Iterator[tuple[int, nodes.Element]]:
    """The blocks that show a cell of the script, each with the line at which the cell begins: a comment before it says that."""
    first = None
    for node in doctree.findall(lambda node: isinstance(node, (nodes.comment, nodes.literal_block))):
        if isinstance(node, nodes.comment):
            text = node.astext()
            first = int(text.removeprefix(_SOURCE).partition("-")[0]) if text.startswith(_SOURCE) else None
        elif first is not None:
            yield first, node
            first = None


def number_lines(code: str, first: int, shown: str) -> list[int]:
    """For each line of a cell as the page shows it, its number in the script; 0 for empty lines and comments.

    Nothing if the page shows something else than what is left of the cell.

    >>> number_lines("x = 1\\n# graph: x -- One\\n\\ny = 2", 10, "x = 1\\n\\ny = 2")
    [10, 0, 13]
    """
    marked = "\n".join(
        f"{line}{_MARK}{at}" if line.strip() and line.lstrip()[0] != "#" else line
        for at, line in enumerate(show_code(code).lines, first)
        if line is not None
    )
    left = without_requests(sphinx_gallery_patches.remove_config_comments(marked)).strip("\n").split("\n")
    parts = [line.partition(_MARK) for line in left]
    if [line.strip() for line, _, _ in parts] != [line.strip() for line in shown.strip("\n").split("\n")]:
        return []
    return [int(number or 0) for _, _, number in parts]


def _find_lines_said_once(doctree: nodes.document) -> dict[str, Place]:
    """The lines of all blocks of code, without prompts, that stand on the page once."""
    found: dict[str, list[Place]] = {}
    for block in doctree.findall(lambda node: isinstance(node, (nodes.literal_block, nodes.doctest_block))):
        for place, line in enumerate(block.astext().split("\n"), 1):
            found.setdefault(line.removeprefix(_PROMPT).strip(), []).append((block, place))
    return {line: places[0] for line, places in found.items() if len(places) == 1}


# -- Drawings of matplotlib's ---------------------------------------------------------------------
# matplotlib writes each color as a number. Here ``#2563eb`` becomes ``var(--plot-2563eb, #2563eb)``: ``plot.css`` says what
# stands for it on a dark page, and a color that it does not name stays as drawn. A drawing with a bitmap in it (a heat map)
# keeps its light paper, since no style can reach the bitmap's colors.
# On a card a drawing has its lines, bars and areas, without a word, a number or a legend: shown small, its text has 3 pixels,
# and is two thirds of the file, since matplotlib draws each letter.

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_COLOR = re.compile(r"#([0-9a-f]{6})\b", re.IGNORECASE)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
#: Where things stand, and a number there with more digits than can be seen: a hundredth of a point is the last that counts.
_PLACES = ("d", "points", "x", "y")
_FINE = re.compile(r"-?\d+\.\d{3,}")
_PIXELS_PER_POINT = 1.5  # the smallest text of a plot, of 8 points, has 12 pixels


class PlotFigure(SphinxDirective):
    """``.. plot-figure:: /path/from/the/source/folder.svg`` with ``:alt:``, which says what to see."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name, drawing = _read_source(self, "plot")
        alt = self.options.get("alt")
        if not alt:
            raise self.error("a plot needs an :alt: that says what to see in it")
        name = "plot-" + _shorten(name)
        svg = inline_plot(drawing, name, nodes.unescape(alt))
        shown = f'<div class="plot-scroll">{svg}</div>{link_to_figure(self.env.docname, name).astext()}'
        return [nodes.raw("", shown, format="html", classes=["plot-figure"])]


def inline_plot(drawing: str, name: str, alt: str) -> str:
    """A drawing of matplotlib's as a part of a page: themed, one named image to a screen reader, no id of another's.

    :param drawing: an SVG document.
    :param name: the drawing's name in the page; it becomes its id.
    :raises xml.etree.ElementTree.ParseError: if ``drawing`` is no XML.
    """
    root = ElementTree.fromstring(drawing)
    _keep_what_is_drawn(root)
    _rename_ids(root, name)
    for element in root.iter():
        for key in element.attrib.keys() & {"style", "fill", "stroke"}:
            element.set(key, _theme_colors(element.attrib[key], ", "))
        for key in element.attrib.keys() & {*_PLACES}:
            element.set(key, _FINE.sub(lambda m: f"{float(m[0]):.2f}", element.attrib[key]))
    width = float(root.attrib.pop("width").removesuffix("pt")) * _PIXELS_PER_POINT
    del root.attrib["height"]
    has_bitmap = root.find(f".//{_SVG}image") is not None
    root.attrib |= {
        "id": name,
        "class": "plot plot-on-paper" if has_bitmap else "plot",
        "role": "img",
        "aria-label": alt,
        "style": f"width: {width:.0f}px",
    }
    ElementTree.register_namespace("", _SVG[1:-1])
    return ElementTree.tostring(root, encoding="unicode")


def _theme_colors(style: str, comma: str) -> str:
    return _COLOR.sub(lambda m: f"var(--plot-{m[1].lower()}{comma}{m[0]})", style)


def _keep_what_is_drawn(root: ElementTree.Element) -> None:
    """Without metadata, and without the style sheet, which in a page would be the whole page's."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
        if not (parent.text or "").strip():
            parent.text = None
        for child in parent:
            child.tail = "\n"


def _rename_ids(root: ElementTree.Element, prefix: str) -> None:
    """Two drawings of a page may not share an id: keep those that are referred to, under the drawing's name."""
    used = set()
    for element in root.iter():
        if _HREF in element.attrib:
            target = element.attrib.pop(_HREF)
            if target.startswith("#"):
                used.add(target[1:])
                target = f"#{prefix}-{target[1:]}"
            element.set("href", target)
        for key, value in element.attrib.items():
            used.update(_REFERENCE.findall(value))
            element.set(key, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))
    for element in root.iter():
        identity = element.attrib.pop("id", None)
        if identity in used:
            element.set("id", f"{prefix}-{identity}")


_KEPT = ("fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity")


def draw_plot_picture(drawing: str) -> str:
    """The small picture of a drawing of matplotlib's, for an element of class ``plot``.

    :raises xml.etree.ElementTree.ParseError: if ``drawing`` is no XML.
    """
    root = ElementTree.fromstring(drawing)
    # what is defined once and used at many points
    marks = {path.get("id", ""): _read_style(path) for path in root.iterfind(f".//{_SVG}defs/{_SVG}path")}
    return f'<svg viewBox="{_find_box(root)}" aria-hidden="true">{"".join(_draw_shapes(root, marks))}</svg>'


def _find_box(root: ElementTree.Element) -> str:
    """The axes, as what is drawn in them is clipped to; the whole drawing where nothing is."""
    clips, sides = root.iterfind(f".//{_SVG}clipPath/{_SVG}rect"), ("x", "y", "width", "height")
    axes = [[float(rect.get(side, "0")) for side in sides] for rect in clips]
    if not axes:
        return _round_all(root.get("viewBox", "0 0 1 1").split())
    left, top = min(x for x, _, _, _ in axes) - 3, min(y for _, y, _, _ in axes) - 3
    right, bottom = max(x + wide for x, _, wide, _ in axes) + 3, max(y + high for _, y, _, high in axes) + 3
    return _round_all([left, top, right - left, bottom - top])


def _draw_shapes(parent: ElementTree.Element, marks: Mapping[str, Any], within_words: bool = False) -> Iterator[str]:
    points: dict[str, list[str]] = {}
    for child in parent:
        style, name = _read_style(child), child.get("id", "")
        if child.tag == f"{_SVG}use" and not within_words:
            style = marks.get(child.get(_HREF, "")[1:], {}) | style
            color = next((style[of] for of in ("fill", "stroke") if style.get(of, "none") != "none"), "none")
            points.setdefault(color, []).append(f"M{_round_all([child.get('x', '0'), child.get('y', '0')])}h0")
        elif child.tag == f"{_SVG}image":
            said = {"href": "".join(child.get(_HREF, "").split()), "style": "image-rendering:pixelated"}
            said |= {key: child.get(key) for key in ("x", "y", "width", "height", "transform") if child.get(key)}
            yield f"<image{''.join(f' {key}={quoteattr(value)}' for key, value in said.items())}/>"
        elif child.tag == f"{_SVG}path":
            if style.get("fill") != "#ffffff" or style.get("stroke", "none") != "none":
                yield f'<path d="{_round_outline(child.get("d", ""))}"{_write_style(style)}/>'
        elif child.tag == f"{_SVG}g" and not name.startswith(("legend_", "matplotlib.axis_")):
            is_box = name.startswith("patch_")  # of words the box stays in which they stand, if they have one
            yield from _draw_shapes(child, marks, name.startswith("text_")) if is_box or not within_words else ()
    for color, at in points.items():
        look = {"stroke": color, "stroke-width": "5", "stroke-linecap": "round"}
        yield f'<path d="{"".join(dict.fromkeys(at))}"{_write_style(look)}/>'


def _read_style(element: ElementTree.Element) -> dict[str, str]:
    said = dict(pair.split(":", 1) for pair in element.get("style", "").split(";") if ":" in pair)
    return {name.strip(): value.strip() for name, value in said.items() if name.strip() in _KEPT}


def _write_style(style: Mapping[str, str]) -> str:
    """As ``style``, in which alone a color may be a variable of the theme."""
    themed = ";".join(f"{name}:{_theme_colors(value, ',')}" for name, value in style.items())
    return f' style="{themed}"' if themed else ""


def _round_outline(d: str) -> str:
    """The outline on whole points: the picture is half as large as the plot, so that is half a pixel.

    >>> _round_outline("M 1.234 5.678 \\nL 1.31 5.7 \\nL 20.9 -0.2 \\nz\\n")
    'M1 6L21 0z'
    """
    found, last = "", ""
    for command, numbers in re.findall(r"([MLHVCQzZ])([^MLHVCQzZ]*)", d):
        at = _round_all(numbers.split())
        if command != "L" or at != last:
            found += command + at
        last = at
    return found


def _round_all(numbers: Iterable[str | float]) -> str:
    return " ".join(str(round(float(number))) for number in numbers)


def setup(app: Sphinx) -> None:
    # Sphinx fills the templates among the static files with these
    rules = {"graph_rules": write_javascript(), "node_rules": RULES}
    app.connect("config-inited", lambda _app, config: config.html_context.update(rules))
    app.add_directive("graph-figure", GraphFigure)
    app.add_directive("plot-figure", PlotFigure)
    connect_for_pages(app, "doctree-read", tie_lines, 600)
