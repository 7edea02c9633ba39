"""``<details>`` as a document node, and two directives that fold a part of a page into one.

``.. solution::`` folds the rest of its section: text, code cells and outputs. ``.. how-measured:: SENTENCE`` folds the code
cells below it, with their outputs, up to the next text: code that measures must run before the results are shown, and a
reader who came for the results need not read it. In a generated page text, code and outputs stand side by side, so a
directive cannot hold them: it marks where the fold begins.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)


class details(nodes.General, nodes.Element):
    """Content that is folded away until the reader opens it. Attribute ``summary``: what stands on the closed fold."""


class fold_mark(nodes.General, nodes.Element):
    """Where a fold begins; gone once the transform has folded it. Attributes ``summary`` and ``kind``."""


class _Mark(Directive):
    def mark(self, kind: str, summary: str) -> list[nodes.Node]:
        mark = fold_mark(kind=kind, summary=summary)
        mark.source, mark.line = self.state_machine.get_source_and_line(self.lineno)
        return [mark]


class Solution(_Mark):
    """``.. solution::`` takes nothing and holds nothing: what follows it in the section is the solution."""

    def run(self) -> list[nodes.Node]:
        return self.mark("solution", "Solution")


class HowMeasured(_Mark):
    """``.. how-measured:: SENTENCE``: the sentence, which is plain text, says what the folded code does."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        sentence = " ".join(self.arguments[0].split())
        if "``" in sentence or ":`" in sentence:
            raise self.error("what stands on a fold is plain text: leave out the markup")
        return self.mark("how-measured", f"How this was measured: {sentence}")


class Fold(SphinxTransform):
    """Move what belongs to each mark into its fold."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for mark in list(self.document.findall(fold_mark)):
            ends = _ends_a_solution if mark["kind"] == "solution" else _is_text
            parent = mark.parent
            start = parent.index(mark)
            end = next((i for i in range(start + 1, len(parent)) if ends(parent[i])), len(parent))
            content = parent.children[start + 1 : end]
            if not any(isinstance(node, nodes.Element) and not isinstance(node, nodes.comment) for node in content):
                logger.error("nothing follows this %s mark in its section", mark["kind"], location=mark)
            parent[start:end] = [details("", *content, summary=mark["summary"], classes=[mark["kind"]])]


def _is_text(node: nodes.Node) -> bool:
    """Text ends the fold of a code cell, and so does the next mark; code, outputs and what is between them do not."""
    is_code = isinstance(node, (nodes.comment, nodes.literal_block, nodes.line_block, nodes.raw, nodes.figure))
    is_output = isinstance(node, nodes.container) and not {"sphx-glr-footer"} & set(node["classes"])
    is_output |= isinstance(node, nodes.block_quote) or type(node).__name__ == "imgsgnode"
    return not (is_code or is_output) or _ends_a_solution(node)


def _ends_a_solution(node: nodes.Node) -> bool:
    """The next section does, and so does the foot of the page: the downloads, and the count of checks before them."""
    if isinstance(node, addnodes.only) and len(node):
        node = node[0]
    is_foot = isinstance(node, nodes.Element) and {"sphx-glr-footer", "claims"} & set(node.get("classes", []))
    return isinstance(node, nodes.section) or bool(is_foot)


def visit_details(self: Any, node: details) -> None:
    self.body.append(self.starttag(node, "details"))
    self.body.append(f"<summary>{self.encode(node['summary'])}</summary>\n")


def depart_details(self: Any, node: details) -> None:
    self.body.append("</details>\n")


def setup(app: Sphinx) -> None:
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(fold_mark)
    app.add_directive("solution", Solution)
    app.add_directive("how-measured", HowMeasured)
    app.add_transform(Fold)
