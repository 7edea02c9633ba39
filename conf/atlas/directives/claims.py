"""``.. claims:: 12`` ends a page with the number of its asserts that ran and passed. `cells.assert_counter` writes it."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from atlas.i18n import _
from atlas.page_parts.example_footer import put_before_downloads


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


def _visit(self: Any, node: claims) -> None:
    self.visit_paragraph(node)


def _depart(self: Any, node: claims) -> None:
    self.depart_paragraph(node)


def setup(app: Sphinx) -> None:
    app.add_node(claims, html=(_visit, _depart))
    app.add_directive("claims", Claims)
    app.add_transform(ClaimsLast)
