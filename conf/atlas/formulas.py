"""Formulas: those of a page as MathML, and the page of those from which PyTorch's backward nodes were made.

MathML is made at build time: no script, no font and no request, and a screen reader can read it. Pandoc converts; its wheel
carries the program. All formulas of a document go through it in one call, when the document is read, and travel with the
document after that. A formula that pandoc does not understand is an error of the page.

``.. derivative-formulas::`` lists each backward node of PyTorch. PyTorch keeps their formulas in ``derivatives.yaml`` and makes
C++ of them when it is built. Both the file and its reader are in the package ``torchgen`` that comes with PyTorch. What was
read is kept as JSON, for the page that lists it and for whoever wants the data.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pypandoc
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .build_facts import get_torch_version
from .tables import let_break, make_long_table
from .toolbox import Refusal, load_json, save_json

logger = logging.getLogger(__name__)

# -- Formulas of a page, as MathML ----------------------------------------------------------------

_PANDOC_API = [1, 23]  # of documents as JSON; a pandoc with another says so
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
#: A brace below a term stretches only in a font that has its parts, and Chromium cuts off its end: a line takes its place.
_BRACE = re.compile(r'<munder><munder>((?:(?!<munder>).)*?)<mo accent="true">\u23df</mo></munder>')
#: A function stands a little apart from an argument without brackets.
_APPLIED = re.compile(r"<mo>(?:&#8289;|\u2061)</mo></mrow>(?!<mo[^>]*>[(\[|{])")


class MathError(ValueError):
    """A formula that cannot be converted."""


def convert_formulas(formulas: list[tuple[str, bool]]) -> list[str]:
    """Convert TeX formulas, each with whether it is displayed, to MathML elements.

    :raises MathError: with pandoc's explanation, if one of them cannot be converted.

    >>> convert_formulas([("x", False)])[0].startswith('<math display="inline"')
    True
    """
    blocks = [
        {"t": "Para", "c": [{"t": "Math", "c": [{"t": "DisplayMath" if display else "InlineMath"}, tex]}]}
        for tex, display in formulas
    ]
    document = {"pandoc-api-version": _PANDOC_API, "meta": {}, "blocks": blocks}
    done = subprocess.run(
        [pypandoc.get_pandoc_path(), "--from=json", "--to=html", "--mathml", "--wrap=none", "--fail-if-warnings"],
        input=json.dumps(document),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise MathError(done.stderr.strip() or f"pandoc ended with exit code {done.returncode}")
    made = _BRACE.sub(r'<munder><mrow class="braced">\1</mrow>', done.stdout)
    made = _APPLIED.sub(r'\g<0><mspace width="0.167em"></mspace>', made)
    return _PARAGRAPH.findall(made)


class ConvertMath(SphinxTransform):
    """Put the MathML of each formula on its node, before Sphinx copies titles into tables of contents."""

    default_priority = 850

    def apply(self, **kwargs: Any) -> None:
        found = [*self.document.findall(nodes.math), *self.document.findall(nodes.math_block)]
        if not found:
            return
        formulas = [(node.astext(), isinstance(node, nodes.math_block)) for node in found]
        try:
            converted = convert_formulas(formulas)
        except MathError:
            converted = [_convert_alone(node, formula) for node, formula in zip(found, formulas, strict=True)]
        for node, mathml in zip(found, converted, strict=True):
            node["mathml"] = mathml


def _convert_alone(node: nodes.Element, formula: tuple[str, bool]) -> str:
    """After a failure of the whole: find the formulas that are at fault, and name their lines."""
    try:
        return convert_formulas([formula])[0]
    except MathError as error:
        logger.error("this formula cannot be converted: %s", str(error).splitlines()[0], location=node)
        return f"<code>{nodes.unescape(formula[0])}</code>"


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(node["mathml"])
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{node["mathml"]}</div>\n')
    raise nodes.SkipNode


# -- Formulas of PyTorch's backward nodes ---------------------------------------------------------

DATA = Path("reference/data/formulas.json")
#: Nodes of PyTorch's own tests, and of variants that are generated: each has the formulas of the operator that it copies.
_LEFT_OUT, _COPIES = ("TestAutograd", "TestWarn"), "_copy"


def read_derivatives() -> dict[str, dict[str, Any]]:
    """Each node of ``derivatives.yaml`` by its name: of which operator it is, its formulas, and the tensors that they need.

    A node has ``schema`` (of the operator), ``key`` (the dispatch key, if the formulas are for one alone), ``backward`` and
    ``forward`` (pairs of names of arguments or results, and a formula), and ``saves`` (names of arguments, or ``result``).

    :raises ImportError: if this PyTorch comes without the file's reader.
    """
    import torchgen
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    package = Path(torchgen.__file__).parent / "packaged"
    files = ("autograd/derivatives.yaml", "ATen/native/native_functions.yaml", "ATen/native/tags.yaml")
    of_schemas, _dispatch_keys = load_derivatives(*(str(package / file) for file in files))
    return {
        found.op: _describe_node("" if key == "Default" else key, found)
        for of_keys in of_schemas.values()
        for key, found in of_keys.items()
        if found.op and not found.op.startswith(_LEFT_OUT) and not found.op.endswith(_COPIES)
    }


def _describe_node(key: str, found: Any) -> dict[str, Any]:
    saved = [attribute.nctype for one in found.derivatives for attribute in (*one.saved_inputs, *one.saved_outputs)]
    return {
        "schema": str(found.func.func),
        "key": key,
        "backward": [[list(one.var_names), one.original_formula] for one in found.derivatives],
        "forward": [[list(one.var_names), one.formula] for one in found.forward_derivatives],
        "saves": sorted({str(kept.name) for kept in saved if _is_tensor(kept.type.cpp_type(strip_ref=True))}),
    }


def _is_tensor(type_of_cpp: str) -> bool:
    """Whether a value that a node saves is a tensor or several, and not what is known about one.

    >>> _is_tensor("::std::vector<at::Tensor>"), _is_tensor("at::TensorOptions")
    (True, False)
    """
    return bool(re.search(r"\bTensor(List|Ref)?\b", type_of_cpp))


def load_formulas(docs: Path) -> dict[str, dict[str, Any]] | None:
    """The nodes that are kept below ``docs``; None if they are missing, broken, or of another PyTorch."""
    kept = load_json(docs / DATA, {"torch": get_torch_version()})
    return kept and kept["nodes"]


def save_formulas(app: Sphinx) -> None:
    """Read the formulas if those that are kept are of another PyTorch. Connected to ``builder-inited``.

    :raises Refusal: if this PyTorch comes without them.
    """
    docs = Path(app.srcdir)
    if (docs / "reference" / "formulas.md").exists() and load_formulas(docs) is None:
        logger.info("formulas: reading those of this PyTorch")
        try:
            save_json(docs / DATA, {"torch": get_torch_version()}, nodes=read_derivatives())
        except ImportError as error:
            raise Refusal(
                f"docs/reference/formulas.md: {error}; this page needs torchgen's derivatives.yaml"
            ) from None


class DerivativeFormulas(SphinxDirective):
    """``{derivative-formulas}``: all nodes, one row for each."""

    def run(self) -> list[nodes.Node]:
        docs = Path(self.env.srcdir)
        self.env.note_dependency(str(docs / DATA))
        return [make_formula_table(load_formulas(docs))]


def make_formula_anchor(node: str) -> str:
    """Where a node's row is on the page."""
    return f"node-{node}"


def make_formula_table(found: dict[str, dict[str, Any]]) -> nodes.raw:
    """All rows.

    :param found: as ``read_derivatives`` returns them.
    """
    said = {
        "name": "Node or operator",
        "count": "{shown} of {all} nodes",
        "none": "No node matches. Nodes that are written by hand in C++ are not in the list.",
    }
    heads = ("node, of the operator", "gradient of each argument", "needs")
    body = "".join(_make_row(name, found[name]) for name in sorted(found, key=str.lower))
    return make_long_table("formulas", "Formulas", heads, body, said)


def _make_row(name: str, node: dict[str, Any]) -> str:
    key = f" <small>({node['key']})</small>" if node["key"] else ""
    # no blocks: a table in Markdown has none in its cells
    formulas = "<br>".join(
        f"<b>{', '.join(arguments)}:</b> <code>{html.escape(formula, quote=False)}</code>"
        for arguments, formula in node["backward"]
    )
    kept = ", ".join(f"<code>{let_break(tensor)}</code>" for tensor in node["saves"]) or "nothing"
    operator = let_break(name_operator(node["schema"]))
    return (
        f'<tr id="{make_formula_anchor(name)}"><th scope="row">{let_break(name)}{key}<br><code>{operator}</code></th>'
        f'<td>{formulas or "–"}</td><td data-label="needs">{kept}</td></tr>\n'
    )


def name_operator(schema: str) -> str:
    """The operator with the names of its arguments, which the formulas use.

    >>> name_operator("mul.Tensor(Tensor self, Tensor other) -> Tensor")
    'mul.Tensor(self, other)'
    >>> name_operator("squeeze_(Tensor(a!) self, *, int[2] kernel=[1, 1]) -> Tensor(a!)")
    'squeeze_(self, kernel)'
    """
    operator, _open, rest = schema.partition("(")
    arguments = re.findall(r"(\w+)(?:=(?:\[[^\]]*\]|[^,()]*))?(?=,|$)", rest.rpartition(") ->")[0])
    return f"{operator}({', '.join(arguments)})"


def setup(app: Sphinx) -> None:
    app.add_transform(ConvertMath)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.add_directive("derivative-formulas", DerivativeFormulas)
    app.connect("builder-inited", save_formulas)
