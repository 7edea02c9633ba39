"""``.. in-short::`` is the box below a title that answers the page's question in two to four lines.

A reader who stops there must have been helped. Search engines, shared links and ``llms.txt`` say the same words
(`head`).
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

CLASS = "in-short"


class InShort(SphinxDirective):
    """``.. in-short::`` with paragraphs, and perhaps one piece of code, as its content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        box = nodes.admonition(classes=[CLASS])
        self.set_source_info(box)
        box += nodes.title("", "In short")
        box += self.parse_content_to_nodes()
        return [box]


def setup(app: Sphinx) -> None:
    app.add_directive("in-short", InShort)
