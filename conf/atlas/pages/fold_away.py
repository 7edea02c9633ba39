"""``<details>`` as a document node, and ``.. solution::``, which folds the rest of its section into one.

A solution in an example is text, code cells and their outputs, which stand side by side in the generated page. The author
marks where it begins; it ends where the section does.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from .words import _

logger = logging.getLogger(__name__)


class details(nodes.General, nodes.Element):
    """Content that is folded away until the reader opens it. Attribute ``summary``: what stands on the closed fold."""


class solution_mark(nodes.General, nodes.Element):
    """Where a solution begins; gone once the transform has folded it."""


class Solution(Directive):
    """``.. solution::`` takes nothing and holds nothing: what follows it in the section is the solution."""

    def run(self) -> list[nodes.Node]:
        mark = solution_mark()
        mark.source, mark.line = self.state_machine.get_source_and_line(self.lineno)
        return [mark]


class FoldSolutions(SphinxTransform):
    """Move everything between the mark and the section's end into the fold."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for mark in list(self.document.findall(solution_mark)):
            parent = mark.parent
            start = parent.index(mark)
            end = next((i for i in range(start, len(parent)) if _ends_a_solution(parent[i])), len(parent))
            content = parent.children[start + 1 : end]
            if not any(isinstance(node, nodes.Element) and not isinstance(node, nodes.comment) for node in content):
                logger.error("nothing follows this solution mark in its section", location=mark)
            fold = details("", *content, summary=_("Solution"), classes=["solution"])
            parent[start:end] = [fold]


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


def _open(self: Any, node: nodes.Element) -> None:
    """Other builders show what is folded."""


def setup(app: Sphinx) -> dict[str, Any]:
    other = dict.fromkeys(("latex", "text", "man", "texinfo"), (_open, _open))
    app.add_node(details, html=(visit_details, depart_details), **other)
    app.add_node(solution_mark, html=(_open, _open), **other)
    app.add_directive("solution", Solution)
    app.add_transform(FoldSolutions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
