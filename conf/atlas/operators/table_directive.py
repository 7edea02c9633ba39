"""The directive ``operator-table``: what ``conf/measure/operators.py`` found, one row for each operator.

The operators are probed before the sources are read, in a process of its own, if there is no result for this PyTorch and
this code.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from atlas.directives.long_table import may_break, region
from atlas.formulas import derivatives
from atlas.formulas import table_directive as formulas
from atlas.toolbox import Refusal

from . import probing
from .probing import DATA

logger = logging.getLogger(__name__)


def probe_operators(app: Sphinx) -> None:
    """Probe all operators if what is kept is out of date. Connected to ``builder-inited``.

    :raises Refusal: if the probe fails as a whole; a single operator that fails is a row of its own.
    """
    docs = Path(app.srcdir)
    if (docs / "reference" / "operators.md").exists() and probing.read_operators(docs) is None:
        logger.info("operators: probing, which takes a minute")
        try:
            logger.info(probing.probe_operators(docs))
        except RuntimeError as error:
            raise Refusal(str(error)) from None


class OperatorTable(SphinxDirective):
    """``{operator-table}``: all rows. Without JavaScript it is a table; ``long_table.js`` adds a filter above it."""

    def run(self) -> list[nodes.Node]:
        rows = rows_of(self)
        docs = Path(self.env.srcdir)
        self.env.note_dependency(str(docs / derivatives.DATA))
        known = frozenset(derivatives.load(docs / derivatives.DATA) or ())
        index = addnodes.index(entries=[("single", row["name"], anchor(row["name"]), "main", None) for row in rows])
        return [index, nodes.raw("", table(rows, known), format="html")]


def rows_of(directive: SphinxDirective) -> list[dict[str, Any]]:
    """What was found, one dictionary for each operator; the directive's page depends on it."""
    docs = Path(directive.env.srcdir)
    directive.env.note_dependency(str(docs / DATA))
    found = probing.read_operators(docs)
    if found is None:
        raise directive.error(f"{DATA} is missing or out of date: build again")
    return found["rows"]


def anchor(name: str) -> str:
    """Case and underscores stay: ``t`` and ``T`` are two operators, and so are ``rsub`` and ``__rsub__``.

    >>> anchor("linalg.norm (subgradients_at_zero)"), anchor("T")
    ('op-linalg-norm-subgradients_at_zero', 'op-T')
    """
    return "op-" + re.sub(r"\W+", "-", name).strip("-")


def table(rows: list[dict[str, Any]], known: frozenset[str] = frozenset()) -> str:
    """All rows as HTML, with a head that says what each column holds.

    :param known: the nodes whose formulas are on another page.
    """
    heads = (
        "operator",
        "node",
        "keeps",
        "shares memory",
        "result changed",
        "input changed",
        "2nd derivative",
        "forward mode",
        "error",
    )
    return region("operators", "Operators", heads, "".join(_row(row, known) for row in rows), _filter())


#: What the filter can ask for: its words, and whether a row is one.
KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "nothing": ("keep nothing", lambda row: not row["saves"]),
    "input": ("keep an input", lambda row: "input" in row["saves"]),
    "output": ("keep the result", lambda row: "output" in row["saves"]),
    "shares": ("share memory with an input", lambda row: row["shares"] != "never"),
    "works": (
        "may be changed, result and input",
        lambda row: row["output_changed"] == row["input_changed"] == "works",
    ),
    "wrong": ("are silently wrong somewhere", lambda row: "wrong" in (row[name] for name in JUDGED)),
    "second": ("have no second derivative", lambda row: row["second"] == "no"),
    "forward": ("have no forward mode", lambda row: row["forward"] == "no"),
    "differ": ("differ between samples", lambda row: bool(row["notes"])),
}
JUDGED = ("output_changed", "input_changed", "second", "forward")


def _filter() -> dict[str, Any]:
    """What the filter says. A row names in ``data-kinds`` of which kinds it is."""
    return {
        "name": "Name, sign or node",
        "kind": "that",
        "kinds": {"": "all operators", **{kind: str(words) for kind, (words, _is) in KINDS.items()}},
        "count": "{shown} of {all}",
        "none": "No operator fits. A name from a traceback, such as MulBackward0, can be pasted.",
    }


def _row(row: dict[str, Any], known: frozenset[str]) -> str:
    shown = may_break(row["name"])
    link = (
        f'<a href="https://docs.pytorch.org/docs/stable/generated/{row["path"]}.html">{shown}</a>'
        if row["path"]
        else shown
    )
    cells = (
        " <br>".join(_node(node, known) for node in row["nodes"]),
        "<br>".join(_kept(row)) or "nothing",
        _noted(row, "shares"),
        *(_noted(row, name) for name in JUDGED),
        power_of_ten(row["error"]),
    )
    others = [row["in_place"]] * bool(row["in_place"]) + row["aliases"]
    more = "".join(f"<br><code>{may_break(name)}</code>" for name in others)
    values = "".join(f"<td>{cell}</td>" for cell in cells)
    kinds = " ".join(kind for kind, (_words, is_one) in KINDS.items() if is_one(row))
    return f'<tr id="{anchor(row["name"])}" data-kinds="{kinds}"><th scope="row">{link}{more}</th>{values}</tr>\n'


def _node(name: str, known: frozenset[str]) -> str:
    """The node without what nearly all names end in, as a link to its formulas if there are some."""
    shown = may_break(name.removesuffix("Backward0"))
    return f'<a href="formulas.html#{formulas.anchor(name)}">{shown}</a>' if name in known else shown


def _kept(row: dict[str, Any]) -> Iterator[str]:
    """Each tensor that is kept by its name, with a note where it is not always kept."""
    said = {"output": "the result", "new": "a new tensor"}
    for name in [*row["inputs"], *(name for name in said if name in row["saves"])]:
        words = said.get(name) or f"<code>{may_break(name)}</code>"
        yield f"{words}{_note(row['notes'].get(f'keeps {name}', ''))}"


def _noted(row: dict[str, Any], name: str) -> str:
    """The word of a cell, and below it for which samples it holds."""
    word = row[name] or "–"
    return (f"<strong>{word}</strong>" if word == "wrong" else word) + _note(row["notes"].get(name, ""))


def _note(text: str) -> str:
    """A note, whose names of arguments stand between backticks.

    >>> _note("if `dim` is None")
    '<br><small>if <code>dim</code> is None</small>'
    """
    code = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text, quote=False))
    return f"<br><small>{code}</small>" if text else ""


def power_of_ten(error: float | None) -> str:
    """The order of an error: its digits differ from machine to machine.

    >>> power_of_ten(3.2e-9), power_of_ten(0.0), power_of_ten(None), power_of_ten(float("nan"))
    ('1e-9', '0', '–', 'nan')
    """
    if error is None:
        return "–"
    if error == 0 or math.isnan(error):
        return f"{error:g}"
    return f"1e{math.floor(math.log10(error)):+d}".replace("+", "")


def setup(app: Sphinx) -> None:
    app.add_directive("operator-table", OperatorTable)
    app.connect("builder-inited", probe_operators)
