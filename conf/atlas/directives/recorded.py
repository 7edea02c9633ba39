"""``.. needs-a-gpu::`` parts the halves of a page, and says where the outputs below it come from.

Where the whole script has run on a GPU, the mark says so itself. A build without a GPU runs what stands above the mark. It
puts ``.. recorded::`` in the place of the mark when it shows a recording below, or ``.. not-recorded::`` when none fits.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx


class provenance(nodes.container):
    """The note about where outputs come from."""


class NeedsAGpu(Directive):
    """``.. needs-a-gpu::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        return [
            _note("From here on, the outputs were measured on the GPU of the machine that built this page.", "here")
        ]


class Recorded(Directive):
    """``.. recorded::`` with ``:gpu:``, ``:date:`` and ``:torch:``, and ``:edited:`` if the text is newer than the outputs."""

    option_spec: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("gpu", "date", "torch"), directives.unchanged_required),
        "edited": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        facts = {name: self.options[name] for name in ("gpu", "date", "torch")}
        sentence = (
            "From here on, the outputs were measured on an %(gpu)s with PyTorch %(torch)s on %(date)s, by this very script. "
            "The build that made this page had no GPU; the outputs above are its own."
        )
        if "edited" in self.options:
            sentence = (
                "From here on, the outputs were measured on an %(gpu)s with PyTorch %(torch)s on %(date)s, by this very code; "
                "the text was edited later. The build that made this page had no GPU; the outputs above are its own."
            )
        return [_note(sentence % facts, "recorded")]


class NotRecorded(Directive):
    """``.. not-recorded:: WHY``"""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        sentence = (
            "From here on, the outputs are missing: the code needs a GPU, the build that made this page had none, and %s. "
            "The outputs above need no GPU."
        )
        return [_note(sentence % self.arguments[0], "not-recorded")]


def _note(sentence: str, kind: str) -> provenance:
    return provenance("", nodes.paragraph("", "", nodes.Text(sentence)), classes=["provenance", kind])


def _visit(self: Any, node: provenance) -> None:
    self.visit_container(node)


def _depart(self: Any, node: provenance) -> None:
    self.depart_container(node)


def setup(app: Sphinx) -> None:
    app.add_node(provenance, html=(_visit, _depart))
    app.add_directive("needs-a-gpu", NeedsAGpu)
    app.add_directive("recorded", Recorded)
    app.add_directive("not-recorded", NotRecorded)
