"""``.. recorded::`` and ``.. not-recorded::``: where the outputs of a GPU page come from, below its title.

The runner writes these directives when it replays a recording, or when there is none that fits.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from atlas.i18n import _


class provenance(nodes.container):
    """The note about where outputs come from."""


class Recorded(Directive):
    """``.. recorded::`` with ``:gpu:``, ``:date:`` and ``:torch:``."""

    option_spec: ClassVar[dict[str, Any]] = dict.fromkeys(("gpu", "date", "torch"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        facts = {name: self.options[name] for name in self.option_spec}
        sentence = _(
            "The outputs of this page were recorded on an %(gpu)s with PyTorch %(torch)s on %(date)s, by this very script. "
            "The build that published the page had no GPU."
        )
        return [_note(sentence % facts, "recorded")]


class NotRecorded(Directive):
    """``.. not-recorded:: WHY``"""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        sentence = _("This page shows its code without outputs: it needs a GPU, and %s.") % self.arguments[0]
        return [_note(sentence, "not-recorded")]


def _note(sentence: str, kind: str) -> provenance:
    return provenance("", nodes.paragraph("", "", nodes.Text(sentence)), classes=["provenance", kind])


class ProvenanceFirst(SphinxTransform):
    """The runner appends the note to a page; it belongs below the title."""

    default_priority = 394

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(provenance)):
            title = next(iter(self.document.findall(nodes.title)), None)
            if title is not None:
                node.parent.remove(node)
                title.parent.insert(title.parent.index(title) + 1, node)


def _visit(self: Any, node: provenance) -> None:
    self.visit_container(node)


def _depart(self: Any, node: provenance) -> None:
    self.depart_container(node)


def setup(app: Sphinx) -> None:
    app.add_node(provenance, html=(_visit, _depart))
    app.add_directive("recorded", Recorded)
    app.add_directive("not-recorded", NotRecorded)
    app.add_transform(ProvenanceFirst)
