"""Let the ``:widths:`` of a ``{table}`` take effect. With given widths, columns do not move while the rows still arrive.

Works around https://github.com/executablebooks/MyST-Parser/issues/793: MyST marks every table ``colwidths-auto``, and docutils
then ignores the widths that the directive has set. MyST-Parser 5.2 has the bug; the pull request #795 is open. Delete this
file when it is released.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from . import has_bug


class KeepWidths(SphinxTransform):
    """Remove MyST's mark from a table whose directive has set widths. Any other table keeps it."""

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"] = [mark for mark in table["classes"] if mark != "colwidths-auto"]


def setup(app: Sphinx) -> None:
    if has_bug("myst-parser", (5, 2)):
        app.add_transform(KeepWidths)
