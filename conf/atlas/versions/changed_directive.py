"""The directive ``torch-changed``: what a page says holds for this PyTorch, and another version does otherwise.

::

    .. torch-changed:: 2.14
       :probe: kinks: x.clamp(0, 1) at x = [0, 1]

       At a bound the gradient is 0 since then.

The values of both versions are taken from what was measured, so the sentence cannot outlive them.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .changes import Change, read_changes

CLASS = "torch-changed"


class TorchChanged(SphinxDirective):
    """``.. torch-changed:: 2.14``: below ``:probe:``, a probe that answers otherwise since that release."""

    required_arguments = 1
    has_content = True
    option_spec = {"probe": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        probe = self.options.get("probe")
        if probe is None:
            raise self.error("name what was measured: ':probe: kinks: x.clamp(0, 1) at x = [0, 1]'")
        try:
            change = read_changes(self).find_change(probe, self.arguments[0])
        except LookupError as error:
            raise self.error(str(error)) from None
        box = nodes.container(classes=[CLASS])
        box += self.parse_content_to_nodes()
        head = nodes.strong("", f"Changed in PyTorch {self.arguments[0]}.")
        told = nodes.paragraph("", "", head, nodes.Text(" "), *_show_values(change))
        box.insert(0, told)
        return [box]


def _show_values(change: Change) -> list[nodes.Node]:
    code = nodes.literal(change.what, change.what)
    return [
        code,
        nodes.Text(": "),
        nodes.literal(change.was, change.was),
        nodes.Text(f" on {change.before}, "),
        nodes.literal(change.now, change.now),
        nodes.Text(f" on {change.since}."),
    ]


def setup(app: Sphinx) -> None:
    app.add_directive("torch-changed", TorchChanged)
