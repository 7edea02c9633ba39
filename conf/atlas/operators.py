"""What every differentiable operator of PyTorch does with memory and gradients, as a table.

``conf/measure/operators.py`` measures it. A build runs that program before it reads pages, if what is kept is of another
PyTorch or of another program. ``{operator-table}`` shows a row for each operator.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from . import formulas
from .build_facts import get_torch_version
from .tables import let_break, make_long_table, mark_code
from .toolbox import Refusal, load_json

logger = logging.getLogger(__name__)

PROGRAM = Path(__file__).parents[1] / "measure" / "operators.py"
DATA = Path("reference/data/operators.json")
"""Where the result is, below docs/, so that its page can link to it."""

# -- Measuring ------------------------------------------------------------------------------------


def identify_result() -> dict[str, Any]:
    """What the result depends on: the version of PyTorch, and the program with those beside it."""
    code = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(PROGRAM.parent.glob("*.py"))))
    return {"torch": get_torch_version(), "code": code.hexdigest()[:16]}


def read_operators(docs: Path) -> dict[str, Any] | None:
    """The result: ``of``, ``rows``, ``not_probed``; None if missing, broken, or of another PyTorch or program."""
    return load_json(docs / DATA, identify_result())


def probe_when_needed(app: Sphinx) -> None:
    """Have the operators measured if the site has their page, and no result that fits. Connected to ``builder-inited``.

    No clock ends it: the program itself ends each operator that hangs. A single one that fails is listed in the result.

    :raises Refusal: if the program fails as a whole.
    """
    docs = Path(app.srcdir)
    if not (docs / "reference" / "operators.md").exists() or read_operators(docs) is not None:
        return
    logger.info("operators: probing, which takes a minute")
    command = [sys.executable, str(PROGRAM), str(docs / DATA), "--of", json.dumps(identify_result())]
    command += ["--jobs", str(joblib.cpu_count())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or read_operators(docs) is None:
        raise Refusal(f"the operators could not be probed; `{' '.join(command[1:3])}` says:\n{done.stderr[-2000:]}")
    logger.info(done.stdout.strip())


# -- The table ------------------------------------------------------------------------------------

HEADS = (
    *("operator", "node", "keeps", "shares memory", "result changed", "input changed"),
    *("2nd derivative", "forward mode", "error"),
)
JUDGED = ("output_changed", "input_changed", "second", "forward")
#: What the filter can ask for: its words, and whether a row is one.
KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "nothing": ("that keep nothing", lambda row: not row["saves"]),
    "input": ("that keep an input", lambda row: "input" in row["saves"]),
    "output": ("that keep the result", lambda row: "output" in row["saves"]),
    "shares": ("that share memory with an input", lambda row: row["shares"] != "never"),
    "works": ("that may be changed, result and input", lambda row: {row[name] for name in JUDGED[:2]} == {"works"}),
    "wrong": ("that are silently wrong somewhere", lambda row: "wrong" in (row[name] for name in JUDGED)),
    "second": ("that have no second derivative", lambda row: row["second"] == "no"),
    "forward": ("that have no forward mode", lambda row: row["forward"] == "no"),
    "differ": ("that differ between samples", lambda row: bool(row["notes"])),
}


class OperatorTable(SphinxDirective):
    """``{operator-table}``: all rows, and an index entry for each."""

    def run(self) -> list[nodes.Node]:
        docs = Path(self.env.srcdir)
        for file in (DATA, formulas.DATA):
            self.env.note_dependency(str(docs / file))
        rows = read_operators(docs)["rows"]
        known = frozenset(formulas.load_formulas(docs) or ())
        entries = [("single", row["name"], make_operator_anchor(row["name"]), "main", None) for row in rows]
        return [addnodes.index(entries=entries), make_operator_table(rows, known)]


def make_operator_anchor(name: str) -> str:
    """Where an operator's row is on the page.

    Case and underscores stay: ``t`` and ``T`` are two operators, and so are ``rsub`` and ``__rsub__``.

    >>> make_operator_anchor("linalg.norm (subgradients_at_zero)"), make_operator_anchor("T")
    ('op-linalg-norm-subgradients_at_zero', 'op-T')
    """
    return "op-" + re.sub(r"\W+", "-", name).strip("-")


def make_operator_table(rows: list[dict[str, Any]], known: frozenset[str] = frozenset()) -> nodes.raw:
    """All rows; each names in ``data-kinds`` of which kinds it is.

    :param known: the nodes whose formulas are on another page.
    """
    said = {
        "name": "Name, sign or node",
        "kind": "Show",
        "kinds": {"": "all operators", **{kind: words for kind, (words, _is_one) in KINDS.items()}},
        "count": "{shown} of {all} operators",
        "none": "No operator matches. You can paste a name from a traceback, such as MulBackward0.",
    }
    return make_long_table("operators", "Operators", HEADS, "".join(_make_row(row, known) for row in rows), said)


def _make_row(row: dict[str, Any], known: frozenset[str]) -> str:
    shown = let_break(row["name"])
    if row["path"]:
        shown = f'<a href="https://docs.pytorch.org/docs/stable/generated/{row["path"]}.html">{shown}</a>'
    shown += "".join(f" <code>{let_break(name)}</code>" for name in [row["in_place"], *row["aliases"]] if name)
    cells = (
        " <br>".join(_link_node(node, known) for node in row["nodes"]),
        "<br>".join(_list_kept(row)) or "nothing",
        *(_judge_column(row, name) for name in ("shares", *JUDGED)),
        round_to_power(row["error"]),
    )
    kinds = " ".join(kind for kind, (_words, is_one) in KINDS.items() if is_one(row))
    start = f'<tr id="{make_operator_anchor(row["name"])}" data-kinds="{kinds}"><th scope="row">{shown}</th>'
    labeled = (f'<td data-label="{head}">{cell}</td>' for head, cell in zip(HEADS[1:], cells, strict=True))
    return "".join([start, *labeled, "</tr>\n"])


def _link_node(name: str, known: frozenset[str]) -> str:
    """The node without what nearly all names end in, as a link to its formulas if there are some."""
    shown = let_break(name.removesuffix("Backward0"))
    return f'<a href="formulas.html#{formulas.make_formula_anchor(name)}">{shown}</a>' if name in known else shown


def _list_kept(row: dict[str, Any]) -> Iterator[str]:
    """Each tensor that is kept by its name, with a note where it is not always kept."""
    said = {"output": "the result", "new": "a new tensor"}
    for name in [*row["inputs"], *(name for name in said if name in row["saves"])]:
        words = said.get(name) or f"<code>{let_break(name)}</code>"
        yield f"{words}{_make_note(row, f'keeps {name}')}".replace("requires a gradient", "needs grad")


def _judge_column(row: dict[str, Any], name: str) -> str:
    """The word of a cell, and below it for which samples it holds."""
    word = row[name] or "–"
    mark = {"wrong": "strong", "raises": "b", "refused": "b", "no": "b"}.get(word)
    return (f"<{mark}>{word}</{mark}>" if mark else word) + _make_note(row, name)


def _make_note(row: dict[str, Any], name: str) -> str:
    return f"<br><small>{mark_code(text)}</small>" if (text := row["notes"].get(name)) else ""


def round_to_power(error: float | None) -> str:
    """The order of an error: its digits differ from machine to machine.

    >>> round_to_power(3.2e-9), round_to_power(0.0), round_to_power(None), round_to_power(float("nan"))
    ('1e-9', '0', '–', 'nan')
    """
    if not error or math.isnan(error):
        return "–" if error is None else f"{error:g}"
    return f"1e{math.floor(math.log10(error))}"


def setup(app: Sphinx) -> None:
    app.add_directive("operator-table", OperatorTable)
    app.connect("builder-inited", probe_when_needed)
