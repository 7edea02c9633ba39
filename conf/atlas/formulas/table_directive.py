"""The directive ``derivative-formulas``: each backward node of PyTorch with its formulas, one row for each node."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from atlas.directives.long_table import may_break, region
from atlas.toolbox import Refusal

from . import derivatives

logger = logging.getLogger(__name__)


def read_formulas(app: Sphinx) -> None:
    """Read the formulas if what is kept is of another PyTorch. Connected to ``builder-inited``.

    :raises Refusal: if this PyTorch comes without them.
    """
    docs = Path(app.srcdir)
    path = docs / derivatives.DATA
    if (docs / "reference" / "formulas.md").exists() and derivatives.load(path) is None:
        logger.info("formulas: reading those of this PyTorch")
        try:
            derivatives.save(path, derivatives.read())
        except ImportError as error:
            raise Refusal(
                f"docs/reference/formulas.md: {error}; this page needs torchgen's derivatives.yaml"
            ) from None


class DerivativeFormulas(SphinxDirective):
    """``{derivative-formulas}``: all rows. Without JavaScript it is a table; ``long_table.js`` adds a filter above it."""

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir) / derivatives.DATA
        self.env.note_dependency(str(path))
        found = derivatives.load(path)
        if found is None:
            raise self.error(f"{derivatives.DATA} is missing or of another PyTorch: build again")
        return [nodes.raw("", table(found), format="html")]


def anchor(node: str) -> str:
    """Where a node's row is on the page."""
    return f"node-{node}"


def table(found: dict[str, dict[str, Any]]) -> str:
    """All rows as HTML.

    :param found: as ``derivatives.read`` returns them.
    """
    said = {
        "name": "Node or operator",
        "count": "{shown} of {all}",
        "none": "No node fits. Nodes that are written by hand in C++ have no formula here.",
    }
    heads = ("node, of the operator", "gradient of each argument", "needs")
    body = "".join(_row(name, found[name]) for name in sorted(found, key=str.lower))
    return region("formulas", "Formulas", heads, body, said)


def _row(name: str, node: dict[str, Any]) -> str:
    key = f" <small>({node['key']})</small>" if node["key"] else ""
    # no blocks: a table in Markdown has none in its cells
    formulas = "<br>".join(
        f"<b>{', '.join(arguments)}:</b> <code>{html.escape(formula, quote=False)}</code>"
        for arguments, formula in node["backward"]
    )
    kept = ", ".join(f"<code>{may_break(tensor)}</code>" for tensor in node["saves"]) or "nothing"
    cells = (
        f'<th scope="row">{may_break(name)}{key}<br><code>{may_break(signature(node["schema"]))}</code></th>',
        f"<td>{formulas or '–'}</td>",
        f'<td data-label="{"needs"}">{kept}</td>',
    )
    return f'<tr id="{anchor(name)}">{"".join(cells)}</tr>\n'


def signature(schema: str) -> str:
    """The operator with the names of its arguments, which the formulas use.

    >>> signature("mul.Tensor(Tensor self, Tensor other) -> Tensor")
    'mul.Tensor(self, other)'
    >>> signature("squeeze_(Tensor(a!) self, *, int[2] kernel=[1, 1]) -> Tensor(a!)")
    'squeeze_(self, kernel)'
    """
    operator, _open, rest = schema.partition("(")
    arguments = re.findall(r"(\w+)(?:=(?:\[[^\]]*\]|[^,()]*))?(?=,|$)", rest.rpartition(") ->")[0])
    return f"{operator}({', '.join(arguments)})"


def setup(app: Sphinx) -> None:
    app.add_directive("derivative-formulas", DerivativeFormulas)
    app.connect("builder-inited", read_formulas)
