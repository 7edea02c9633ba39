"""``.. graph-figure::`` draws a graph on the page, with its title and with the same graph as a table.

The drawing stands in the page as SVG, not as an image, so that its text can be searched and selected and its colors
follow the theme. The examples' scraper writes this directive; a page under ``docs/`` may show an example's figure with it.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from atlas.folds import make_details
from graphs.figure_data import figure_data
from graphs.model import Graph, graph_from_dict

from .graph_code import with_code
from .graph_player import player
from .svg_source import drawing_of


class GraphFigure(SphinxDirective):
    """``.. graph-figure:: /path/from/the/source/folder.graph.json``

    ``:title:`` says what to see. ``:table:`` puts the graph's table below it; a page that repeats a figure does without.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"title": directives.unchanged_required, "table": directives.flag}

    def run(self) -> list[nodes.Node]:
        try:
            from graphs.draw import draw_graph  # Graphviz takes a moment to load, and a build may read no figure
        except ImportError as error:
            raise self.error(str(error)) from None
        title = self.options.get("title")
        if not title:
            raise self.error("a graph figure needs a :title: that says what to see in it")
        name, text = drawing_of(self, "graph")
        try:
            graph, made_by, show_saved = parse_graph(text)
        except (ValueError, LookupError, TypeError):
            raise self.error(f"{self.arguments[0]} is no graph; a plot has a plot-figure") from None
        # an id that a reader can put into a link: graph-first-graph-2
        name = "graph-" + re.sub(r"[^a-z0-9]+0*", "-", name.removeprefix("sphx_glr_").removesuffix(".graph").lower())
        data = figure_data(graph, made_by)
        svg = draw_graph(graph, label=nodes.unescape(title), show_saved=show_saved)
        figure = nodes.figure("", classes=["graph-figure"])
        shown = f'<div class="graph-scroll">{svg}</div>{player(name, data)}'
        figure += with_code(nodes.raw("", f'<div id="{name}">{shown}</div>', format="html"), data)
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


def parse_graph(text: str) -> tuple[Graph, dict[str, list[Any]], bool]:
    """What the scraper wrote of a figure: the graph, the lines that made its cards, and whether to show what was saved.

    :raises ValueError, LookupError, TypeError: if ``text`` is something else.
    """
    data = json.loads(text)
    return graph_from_dict(data["graph"]), data["made_by"], data["show_saved"]


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
