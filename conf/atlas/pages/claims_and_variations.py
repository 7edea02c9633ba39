"""``.. claims::`` and ``.. varies::``: what a page says of its own outputs.

``.. claims:: 12`` ends the page with the number of its asserts that ran and passed. ``.. varies::`` stands above an output
that differs from build to build and holds the reason.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from .downloads import put_before_downloads
from .words import _


class claims(nodes.paragraph):
    """The sentence about a page's checks. Attribute ``count``."""


class Claims(Directive):
    """``.. claims:: N``"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        count = int(self.arguments[0])
        sentence = (
            _("%s statements of this page were checked by asserts when it was built, and all of them hold.") % count
        )
        if count == 1:
            sentence = _("One statement of this page was checked by an assert when it was built, and it holds.")
        return [claims("", "", nodes.Text(sentence), classes=["claims"], count=count)]


class ClaimsLast(SphinxTransform):
    """The count is written after the last code cell; on the page it stands at the very end of the text."""

    default_priority = (
        392  # before solutions are folded, and before a varying output is gathered: it may stand between
    )

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(claims)):
            node.parent.remove(node)
            if not put_before_downloads(self.document, node):
                self.document.append(node)


class Varies(Directive):
    """``.. varies::`` with a sentence as its content; ``GatherVarying`` puts what varies into the same box."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        note = nodes.container(classes=["varies-note"])
        note += nodes.paragraph("", "", nodes.strong("", _("This output varies.")))
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


def _visit(self: Any, node: claims) -> None:
    self.visit_paragraph(node)


def _depart(self: Any, node: claims) -> None:
    self.depart_paragraph(node)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(claims, **dict.fromkeys(("html", "latex", "text", "man", "texinfo"), (_visit, _depart)))
    app.add_directive("claims", Claims)
    app.add_directive("varies", Varies)
    app.add_transform(ClaimsLast)
    app.add_transform(GatherVarying)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
