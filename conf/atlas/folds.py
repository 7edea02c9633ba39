"""What is folded away until a reader opens it: solutions, code that measures, and the question before a solution.

``.. solution::`` folds the rest of its section: text, code cells and outputs. ``.. how-measured:: SENTENCE`` folds the code
cells below it, with their outputs, up to the next text: code that measures must run before the results are shown, and a
reader who came for the results need not read it. In a generated page text, code and outputs stand side by side, so a
directive cannot hold them: it marks where the fold begins.

``.. predict:: QUESTION`` is a field in which a reader answers before the solution is opened, and is told whether it is right.
It is written for the comment ``# predict:`` of an example. It stands with its cell, which a solution may hold: then it moves
out, to the place before the fold. Without JavaScript there is no field; the exercise has asked already.
``conf/static/predict.js`` compares the answers.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from drawgrad.player import json_for_script

logger = logging.getLogger(__name__)

# -- A fold ---------------------------------------------------------------------------------------


class details(nodes.General, nodes.Element):
    """Content that can be folded away. Attributes ``summary``, what stands on the fold, and ``is_open``, at first."""


def make_details(summary: str, *content: nodes.Node, classes: Sequence[str] = (), is_open: bool = False) -> details:
    """A fold, which is closed at first unless ``is_open``.

    :param summary: what stands on it, as plain text.
    """
    return details("", *content, summary=summary, is_open=is_open, classes=list(classes))


def visit_details(self: Any, node: details) -> None:
    self.body.append(self.starttag(node, "details", **({"open": "open"} if node.get("is_open") else {})))
    self.body.append(f"<summary>{self.encode(node['summary'])}</summary>\n")


def depart_details(self: Any, node: details) -> None:
    self.body.append("</details>\n")


# -- Folds of an author ---------------------------------------------------------------------------


class fold_mark(nodes.General, nodes.Element):
    """Where a fold begins; gone once the transform has folded it. Attributes ``summary`` and ``kind``."""


class Solution(SphinxDirective):
    """``.. solution::`` takes nothing and holds nothing: what follows it in the section is the solution."""

    def run(self) -> list[nodes.Node]:
        return self.make_mark("solution", "Solution")

    def make_mark(self, kind: str, summary: str) -> list[nodes.Node]:
        mark = fold_mark(kind=kind, summary=summary)
        self.set_source_info(mark)
        return [mark]


class HowMeasured(Solution):
    """``.. how-measured:: SENTENCE``: the sentence, which is plain text, says what the folded code does."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        sentence = " ".join(self.arguments[0].split())
        if "``" in sentence or ":`" in sentence:
            raise self.error("what stands on a fold is plain text: leave out the markup")
        return self.make_mark("how-measured", f"How this was measured: {sentence}")


class FoldWhatFollows(SphinxTransform):
    """Move what belongs to each mark into its fold."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for mark in list(self.document.findall(fold_mark)):
            ends_it = _ends_solution if mark["kind"] == "solution" else _is_text
            parent = mark.parent
            start = parent.index(mark)
            end = next((i for i in range(start + 1, len(parent)) if ends_it(parent[i])), len(parent))
            content = parent.children[start + 1 : end]
            if not any(isinstance(node, nodes.Element) and not isinstance(node, nodes.comment) for node in content):
                logger.error("nothing follows this %s mark in its section", mark["kind"], location=mark)
            parent[start:end] = [make_details(mark["summary"], *content, classes=[mark["kind"]])]


def _is_text(node: nodes.Node) -> bool:
    """Text ends the fold of a code cell, and so does the next mark; code, outputs and what is between them do not."""
    is_code = isinstance(node, (nodes.comment, nodes.literal_block, nodes.line_block, nodes.raw, nodes.figure))
    is_output = isinstance(node, (nodes.container, nodes.block_quote)) or type(node).__name__ == "imgsgnode"
    return not (is_code or is_output) or _ends_solution(node)


def _ends_solution(node: nodes.Node) -> bool:
    """The next section does, and so does the foot of the page, which begins with sphinx-gallery's downloads."""
    if isinstance(node, addnodes.only) and len(node):
        node = node[0]
    is_foot = isinstance(node, nodes.Element) and "sphx-glr-footer" in node.get("classes", [])
    return isinstance(node, nodes.section) or is_foot


# -- A question before a solution -----------------------------------------------------------------


class prediction(nodes.General, nodes.Element):
    """Attributes: ``question``, ``answer`` (a list of texts: numbers, or one word) and ``words`` (to choose from, or none)."""


class Predict(SphinxDirective):
    """``.. predict:: QUESTION`` with the options ``answer`` and ``words``, each a list in JSON."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"answer": json.loads, "words": json.loads}

    def run(self) -> list[nodes.Node]:
        question = " ".join(self.arguments[0].split())
        said = {"question": question, "answer": self.options["answer"], "words": self.options.get("words", [])}
        asked = prediction("", classes=["no-search"], **said)
        self.set_source_info(asked)
        return [asked]


class AskBeforeSolution(SphinxTransform):
    """Put a question before the fold that has its answer. Without a fold the answer would be in sight, which is an error."""

    default_priority = FoldWhatFollows.default_priority + 1

    def apply(self, **kwargs: Any) -> None:
        for asked in list(self.document.findall(prediction)):
            fold = asked.parent
            while fold is not None and not isinstance(fold, details):
                fold = fold.parent
            asked.parent.remove(asked)
            if fold is None:
                logger.error(
                    "this question stands beside its answer: put its cell below '.. solution::'", location=asked
                )
            else:
                fold.parent.insert(fold.parent.index(fold), asked)


def make_question_form(question: str, answer: list[str], words: list[str]) -> str:
    """The form as HTML, with what its script says.

    :param answer: what is right: numbers as text, or one of the words.
    :param words: to choose from; if empty, the reader types numbers.

    >>> "<span>Is <code>a &lt; b</code>?</span>" in make_question_form("Is ``a < b``?", ["yes"], ["yes", "no"])
    True
    """
    count = len(answer)
    wanted = "Type a number, such as 0.25 or 1/3." if count == 1 else f"Type {count} numbers, separated by commas."
    said = {
        "answer": answer,
        "right": "Right.",
        "wrong": "Not this. Try again, or open the solution.",
        "part": "{right} of {all} are right.",
        "unread": "Choose one." if words else wanted,
    }
    if words:
        choices = "".join(f"<option>{html.escape(word)}</option>" for word in words)
        entry = f"<select><option></option>{choices}</select>"
    else:
        entry = '<input type="text" autocomplete="off" autocapitalize="off" spellcheck="false">'
    shown = re.sub("``(.+?)``", r"<code>\1</code>", html.escape(question, quote=False))
    return (
        f'<form class="predict no-search" hidden><label><span>{shown}</span> {entry}</label> '
        f'<button type="submit">Check</button> <output aria-live="polite"></output>{json_for_script(said)}</form>'
    )


def visit_prediction(self: Any, node: prediction) -> None:
    self.body.append(make_question_form(node["question"], node["answer"], node["words"]))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_node(details, html=(visit_details, depart_details))
    app.add_node(fold_mark)
    app.add_directive("solution", Solution)
    app.add_directive("how-measured", HowMeasured)
    app.add_transform(FoldWhatFollows)
    app.add_node(prediction, html=(visit_prediction, None))
    app.add_directive("predict", Predict)
    app.add_transform(AskBeforeSolution)
