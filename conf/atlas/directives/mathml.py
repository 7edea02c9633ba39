"""Math as MathML, made at build time: no script, no font and no request, and a screen reader can read it.

Pandoc converts; its wheel carries the program. All formulas of a document go through it in one call, when the document is
read, and travel with the document after that. A formula that pandoc does not understand is an error of the page.

Two things are written as browsers show them well. A brace below a term stretches only in a font that has its parts, and
Chromium cuts off its end: a line (``math.css``) takes its place. A function stands a little apart from an argument without
brackets.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from typing import Any

import pypandoc
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_BRACE = re.compile(r'<munder><munder>((?:(?!<munder>).)*?)<mo accent="true">\u23df</mo></munder>')
_APPLIED = re.compile(r"<mo>(?:&#8289;|\u2061)</mo></mrow>(?!<mo[^>]*>[(\[|{])")


class MathError(ValueError):
    """A formula that cannot be converted."""


def convert(formulas: list[tuple[str, bool]]) -> list[str]:
    """Convert TeX formulas, each with whether it is displayed, to MathML elements.

    :raises MathError: with pandoc's explanation, if one of them cannot be converted.

    >>> convert([("x", False)])[0].startswith('<math display="inline"')
    True
    """
    blocks = [
        {"t": "Para", "c": [{"t": "Math", "c": [{"t": "DisplayMath" if display else "InlineMath"}, tex]}]}
        for tex, display in formulas
    ]
    document = {"pandoc-api-version": _api_version(), "meta": {}, "blocks": blocks}
    done = subprocess.run(
        [pypandoc.get_pandoc_path(), "--from=json", "--to=html", "--mathml", "--wrap=none", "--fail-if-warnings"],
        input=json.dumps(document),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise MathError(done.stderr.strip() or f"pandoc ended with exit code {done.returncode}")
    return [_well_shown(match[1]) for match in _PARAGRAPH.finditer(done.stdout)]


def _well_shown(mathml: str) -> str:
    mathml = _BRACE.sub(r'<munder><mrow class="braced">\1</mrow>', mathml)
    return _APPLIED.sub(r'\g<0><mspace width="0.167em"></mspace>', mathml)


@cache
def _api_version() -> list[int]:
    done = subprocess.run(
        [pypandoc.get_pandoc_path(), "--from=markdown", "--to=json"],
        input="",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["pandoc-api-version"]


class ConvertMath(SphinxTransform):
    """Put the MathML of each formula on its node, before Sphinx copies titles into tables of contents."""

    default_priority = 850

    def apply(self, **kwargs: Any) -> None:
        found = [*self.document.findall(nodes.math), *self.document.findall(nodes.math_block)]
        if not found:
            return
        formulas = [(node.astext(), isinstance(node, nodes.math_block)) for node in found]
        try:
            converted = convert(formulas)
        except MathError:
            converted = [_convert_alone(node, formula) for node, formula in zip(found, formulas, strict=True)]
        for node, mathml in zip(found, converted, strict=True):
            node["mathml"] = mathml


def _convert_alone(node: nodes.Element, formula: tuple[str, bool]) -> str:
    """After a failure of the whole: find the formulas that are at fault, and name their lines."""
    try:
        return convert([formula])[0]
    except MathError as error:
        logger.error("this formula cannot be converted: %s", str(error).splitlines()[0], location=node)
        return f"<code>{nodes.unescape(formula[0])}</code>"


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(node["mathml"])
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append('<div class="math">')  # Sphinx puts the equation's id on a target before it
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "")
        self.body.append("</span>")
    self.body.append(node["mathml"] + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_transform(ConvertMath)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
