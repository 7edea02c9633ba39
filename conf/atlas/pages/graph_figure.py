"""``.. graph-figure::`` puts a graph's SVG into the page, with its title and with the same graph as a table.

The drawing stands in the page as SVG, not as an image, so that its text can be searched and selected and its colours
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

from .drawings import drawing_of
from .fold_away import details
from .words import _

_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)


class GraphFigure(SphinxDirective):
    """``.. graph-figure:: /path/from/the/source/folder.svg``

    ``:title:`` says what to see. The content is a JSON list of rows, one for each card of the graph: name, kind, value,
    gradient, where it goes. Without content (on a page that repeats a figure) there is no table.
    """

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "title": directives.unchanged_required,
        "left-out": directives.nonnegative_int,
    }

    def run(self) -> list[nodes.Node]:
        title = self.options.get("title")
        if not title:
            raise self.error("a graph figure needs a :title: that says what to see in it")
        _name, svg = drawing_of(self, "graph")
        figure = nodes.figure("", classes=["graph-figure"])
        figure += nodes.raw("", _inline(svg, title), format="html")
        figure += nodes.caption(title, title)
        self.set_source_info(figure)
        legend = nodes.legend()
        left_out = self.options.get("left-out", 0)
        if left_out:
            sentence = _("The graph is too large to draw: %s of its cards are left out.") % left_out
            legend += nodes.paragraph(sentence, sentence)
        if self.content:
            legend += details("", _table(json.loads("\n".join(self.content))), summary=_("The graph as a table"))
        if legend.children:
            figure += legend
        return [figure]


def _inline(svg: str, title: str) -> str:
    """The SVG as a part of the page: no style of its own, and one named image to a screen reader."""
    label = nodes.unescape(title).replace("&", "&amp;").replace('"', "&quot;")
    svg = _STYLE.sub("", svg).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f'<div class="graph-scroll">{svg}</div>'


def _table(rows: list[list[str]]) -> nodes.table:
    titles = [_("Tensor or node"), _("What it is"), _("Value"), _("Gradient"), _("Goes into")]
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=1) for _title in titles]
    group += nodes.thead("", _row(titles))
    group += nodes.tbody("", *[_row(row) for row in rows])
    return nodes.table("", group, classes=["graph-table"])


def _row(cells: list[str]) -> nodes.row:
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", nodes.Text(cell))) for cell in cells])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("graph-figure", GraphFigure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
