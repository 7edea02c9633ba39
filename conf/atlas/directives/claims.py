"""``.. claims:: 12 3 1``: the number of asserts that ran, for the foot of the page. `cells.assert_counter` writes it."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class claims(nodes.paragraph):
    """The sentence about a page's asserts.

    Attributes ``count``: how many ran in this build; ``recorded``: whether others ran where the page was recorded.
    """


class Claims(Directive):
    """``.. claims:: ASSERTS ABOUT_ERRORS FAILED BUILT``: how many asserts ran.

    The second number is of those about errors that the page raises on purpose. The third is of those that failed and were
    caught: the page shows a mistake with them. The fourth is there if the end of the page was recorded: so many of them ran in
    this build.
    """

    required_arguments = 1
    optional_arguments = 3

    def run(self) -> list[nodes.Node]:
        numbers = [int(number) for number in self.arguments]
        count, about_errors, failed = (*numbers, 0, 0)[:3]
        built = numbers[3] if len(numbers) > 3 else count
        sentence = f"{count} asserts ran on this page when it was built, and none failed."
        if failed:
            sentence = (
                f"{count} asserts ran on this page when it was built. {failed} failed on purpose, and no other did."
            )
        elif built < count:
            sentence = (
                f"{count} asserts ran on this page when it was recorded, {built} of them again when it was built, "
                "and none failed."
            )
        elif count == 1:
            sentence = "One assert ran on this page when it was built, and it did not fail."
        if about_errors:
            more = f"{about_errors} of them are about errors that the page raises on purpose."
            if about_errors == 1:
                more = "One of them is about an error that the page raises on purpose."
            sentence = f"{sentence} {more}"
        return [claims("", "", nodes.Text(sentence), classes=["claims"], count=built, recorded=built < count)]


class ClaimsLast(SphinxTransform):
    """The count is written after the last code cell. It leaves the text; `footer` puts it among the lines at the foot."""

    #: before solutions are folded, and before a varying output is gathered: the count may stand between
    default_priority = 392

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(claims)):
            node.parent.remove(node)
            self.document.append(node)


def _visit(self: Any, node: claims) -> None:
    self.visit_paragraph(node)


def _depart(self: Any, node: claims) -> None:
    self.depart_paragraph(node)


def setup(app: Sphinx) -> None:
    app.add_node(claims, html=(_visit, _depart))
    app.add_directive("claims", Claims)
    app.add_transform(ClaimsLast)
