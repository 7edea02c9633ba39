"""``.. predict:: QUESTION``: a field in which a reader answers before the solution is opened, and is told whether it is right.

`cells.prediction` writes it, for the comment ``# predict:`` of an example. It stands with its cell, which a solution may hold:
then it moves out, to the place before the fold. Without JavaScript there is no field; the exercise has asked already.
``conf/static/predict.js`` compares the answers.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from atlas.toolbox import json_for_script

from .fold import Fold, details

logger = logging.getLogger(__name__)


class prediction(nodes.General, nodes.Element):
    """Attributes: ``question``, ``answer`` (a list of texts: numbers, or one word) and ``words`` (to choose from, or none)."""


class Predict(SphinxDirective):
    """``.. predict:: QUESTION`` with the options ``answer`` and ``words``, each a list in JSON."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"answer": json.loads, "words": json.loads}

    def run(self) -> list[nodes.Node]:
        if "answer" not in self.options:
            raise self.error("a prediction needs its answer: write '# predict:' into a cell of an example")
        question = " ".join(self.arguments[0].split())
        said = {"question": question, "answer": self.options["answer"], "words": self.options.get("words", [])}
        asked = prediction("", classes=["no-search"], **said)
        self.set_source_info(asked)
        return [asked]


class OutOfSolutions(SphinxTransform):
    """Put a question before the fold that has its answer. Without a fold the answer would be in sight, which is an error."""

    default_priority = Fold.default_priority + 1

    def apply(self, **kwargs: Any) -> None:
        for asked in list(self.document.findall(prediction)):
            fold = _fold_around(asked)
            asked.parent.remove(asked)
            if fold is None:
                logger.error(
                    "this question stands beside its answer: put its cell below '.. solution::'", location=asked
                )
            else:
                fold.parent.insert(fold.parent.index(fold), asked)


def _fold_around(node: nodes.Node) -> details | None:
    while node is not None and not isinstance(node, details):
        node = node.parent
    return node


def field(question: str, answer: list[str], words: list[str]) -> str:
    """The form. What the script says is in it, in the page's language.

    :param answer: what is right: numbers as text, or one of the words.
    :param words: to choose from; if empty, the reader types numbers.
    """
    count = len(answer)
    wanted = "Type a number, such as 0.25 or 1/3." if count == 1 else f"Type {count} numbers, with commas."
    said = {
        "answer": answer,
        "right": "Right.",
        "wrong": "Not this. Try again, or open the solution.",
        "part": "{right} of {all} are right.",
        "unread": "Choose one." if words else str(wanted),
    }
    if words:
        choices = "".join(f"<option>{html.escape(word)}</option>" for word in words)
        entry = f"<select><option></option>{choices}</select>"
    else:
        entry = '<input type="text" autocomplete="off" autocapitalize="off" spellcheck="false">'
    return (
        f'<form class="predict no-search" hidden><label><span>{_with_code(question)}</span> {entry}</label> '
        f'<button type="submit">{"Check"}</button> <output aria-live="polite"></output>{json_for_script(said)}</form>'
    )


def _with_code(question: str) -> str:
    """
    >>> _with_code("Is ``a < b``?")
    'Is <code>a &lt; b</code>?'
    """
    return re.sub("``(.+?)``", r"<code>\1</code>", html.escape(question, quote=False))


def visit_prediction(self: Any, node: prediction) -> None:
    self.body.append(field(node["question"], node["answer"], node["words"]))


def depart_prediction(self: Any, node: prediction) -> None:
    """It has no content."""


def setup(app: Sphinx) -> None:
    app.add_node(prediction, html=(visit_prediction, depart_prediction))
    app.add_directive("predict", Predict)
    app.add_transform(OutOfSolutions)
