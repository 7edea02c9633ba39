"""Let the ``:widths:`` of a ``{table}`` hold. MyST marks every table as one whose widths the browser finds out.

With given widths a browser need not move the columns while the rows are still arriving.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class KeepWidths(SphinxTransform):
    """Of the two marks that MyST and the directive set, keep the directive's."""

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"] = [mark for mark in table["classes"] if mark != "colwidths-auto"]


def setup(app: Sphinx) -> None:
    app.add_transform(KeepWidths)
