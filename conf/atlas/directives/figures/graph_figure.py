"""``.. graph-figure::`` puts a graph's SVG into the page, with its title and with the same graph as a table.

The drawing stands in the page as SVG, not as an image, so that its text can be searched and selected and its colours
follow the theme. The examples' scraper writes this directive; a page under ``docs/`` may show an example's figure with it.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from atlas.folds import make_details

from .graph_code import with_code
from .graph_player import player
from .svg_source import drawing_of

_METADATA = re.compile(r"<metadata>(.*?)</metadata>\n?", re.DOTALL)
_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)
#: The size of a drawing when it stands upright: the size that it will have on a phone, or that it has anywhere.
_UPRIGHT = re.compile(
    r'<svg [^>]*?(?:data-upright="-2 -2 (?P<width>\d+) (?P<height>\d+)"|graph-upright" viewBox="-2 -2 (?P<w>\d+) (?P<h>\d+)")'
)


class GraphFigure(SphinxDirective):
    """``.. graph-figure:: /path/from/the/source/folder.svg``

    ``:title:`` says what to see. ``:table:`` puts the graph's table below it; a page that repeats a figure does without.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"title": directives.unchanged_required, "table": directives.flag}

    def run(self) -> list[nodes.Node]:
        title = self.options.get("title")
        if not title:
            raise self.error("a graph figure needs a :title: that says what to see in it")
        name, svg = drawing_of(self, "graph")
        try:
            data = _data(svg)
        except ValueError:
            raise self.error(f"{self.arguments[0]} is no drawing of a graph; a plot has a plot-figure") from None
        # an id that a reader can put into a link: graph-first-graph-2
        name = "graph-" + re.sub(r"[^a-z0-9]+0*", "-", name.removeprefix("sphx_glr_").lower())
        figure = nodes.figure("", classes=["graph-figure"])
        drawing = nodes.raw("", f'<div id="{name}">{_inline(svg, title)}{player(name, data)}</div>', format="html")
        figure += with_code(drawing, data)
        figure += nodes.caption(title, title)
        self.set_source_info(figure)
        legend = nodes.legend()
        if data["left_out"]:
            sentence = "The graph is too large to draw: {} of its cards are left out.".format(data["left_out"])
            legend += nodes.paragraph(sentence, sentence)
        if "table" in self.options:
            legend += make_details("The graph as a table", _table(data["rows"]))
        if legend.children:
            figure += legend
        return [figure]


def _data(svg: str) -> dict[str, Any]:
    """What the drawing says of its graph; empty for one that says nothing.

    :raises ValueError: if it speaks of something else, as the drawings of matplotlib do.
    """
    found = _METADATA.search(svg)
    return json.loads(html.unescape(found[1])) if found else {"rows": [], "left_out": 0, "cards": {}, "steps": []}


def missing_in(svg: str) -> str:
    """The first thing that a figure needs and the drawing does not say, as one of older code; empty if it says all.

    >>> missing_in('<svg><metadata>{"rows": [], "left_out": 0, "cards": {}}</metadata></svg>')
    'steps'
    """
    try:
        data = _data(svg)
        data["rows"], data["left_out"], player("", data)
    except KeyError as error:
        return str(error.args[0])
    except ValueError:
        return "a graph"
    return ""


def _inline(svg: str, title: str) -> str:
    """The SVG as a part of the page: no style of its own, and one named image to a screen reader."""
    label = nodes.unescape(title).replace("&", "&amp;").replace('"', "&quot;")
    upright = _UPRIGHT.search(svg)
    size = [number for number in upright.groups() if number] if upright else []
    style = ' style="--upright-width: {0}px; --upright-ratio: {0} / {1}" '.format(*size) if size else " "
    svg = _METADATA.sub("", _STYLE.sub("", svg)).replace("<svg ", f'<svg role="img" aria-label="{label}"{style}', 1)
    return f'<div class="graph-scroll">{svg}</div>'


def _table(rows: list[list[str]]) -> nodes.table:
    titles = ["Tensor or node", "What it is", "Value", "Gradient", "Goes into"]
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=1) for _title in titles]
    group += nodes.thead("", _row(titles))
    group += nodes.tbody("", *[_row(row) for row in rows])
    return nodes.table("", group, classes=["graph-table"])


def _row(cells: list[str]) -> nodes.row:
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", nodes.Text(cell))) for cell in cells])


def setup(app: Sphinx) -> None:
    app.add_directive("graph-figure", GraphFigure)
