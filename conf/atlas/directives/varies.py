"""``.. varies::`` stands above an output that differs from build to build, and holds the reason.

`cells.varying_note` writes it, for the comment ``# varies:`` of an example.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class Varies(Directive):
    """``.. varies::`` with a sentence as its content; ``GatherVarying`` puts what varies into the same box."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        note = nodes.container(classes=["varies-note"])
        note += nodes.paragraph("", "", nodes.strong("", "This output varies."))
        body = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, body)
        for child in body.children:
            note += child
        return [note]


class GatherVarying(SphinxTransform):
    """Put the note, and the figures and outputs of its cell around it, into one box.

    Whoever compares two builds leaves these boxes out, and the search index does not hold them.
    """

    default_priority = 393

    def apply(self, **kwargs: Any) -> None:
        for note in [node for node in self.document.findall(nodes.container) if "varies-note" in node["classes"]]:
            parent, at = note.parent, note.parent.index(note)
            first, last = at, at + 1
            while first > 0 and _is_figure(parent[first - 1]):
                first -= 1
            while last < len(parent) and _is_output(parent[last]):
                last += 1
            around = parent.children[first:at] + parent.children[at + 1 : last]
            box = nodes.container("", note, *around, classes=["varies", "no-search"])
            parent.children[first:last] = [box]
            parent.setup_child(box)


def _is_figure(node: nodes.Node) -> bool:
    is_plot = isinstance(node, nodes.raw) and "plot-figure" in node["classes"]
    return is_plot or isinstance(node, nodes.figure) or type(node).__name__ == "imgsgnode" or _is_between(node)


def _is_output(node: nodes.Node) -> bool:
    is_text = isinstance(node, nodes.literal_block) and "sphx-glr-script-out" in node["classes"]
    is_table = isinstance(node, nodes.raw) and "output_html" in node.astext()
    return is_text or is_table or _is_between(node)


def _is_between(node: nodes.Node) -> bool:
    """What sphinx-gallery puts between outputs: an empty line, a comment with line numbers."""
    return isinstance(node, (nodes.comment, nodes.line_block)) or (
        isinstance(node, nodes.raw) and not node.astext().replace("<br />", "").strip()
    )


def setup(app: Sphinx) -> None:
    app.add_directive("varies", Varies)
    app.add_transform(GatherVarying)
