"""A page about an error helps in its first screen: the message, the cause, what to change, and what not to do.

The *In short* box of such a page holds the cause in a sentence, a diff from code that raises the error to code that does not,
and what only hides the error. Both sides of the diff have run: what it takes away is in the first code cell, which raises the
message of the title, and what it adds is in a later one. A message that this build cannot raise is quoted, with its source; the
first cell then raises what the CPU says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.directives import in_short, quoted_message
from atlas.gallery import sphinx_gallery_patches

from .output_traces import is_output

logger = logging.getLogger(__name__)

CHAPTER = "gallery/errors/"
LINES = range(2, 9)  # of a diff


def faults(document: nodes.document, cells: list[str]) -> Iterator[str]:
    """What a page about an error lacks, each as a sentence.

    :param cells: the code of the page, cell by cell, hidden parts included.
    """
    box = next((node for node in document.findall(nodes.admonition) if in_short.CLASS in node["classes"]), None)
    if box is None:
        yield "there is no box: put '.. in-short::' with cause, diff and 'Not this' below the title"
        return
    diff = next((node for node in box.findall(nodes.literal_block) if node.get("language") == "diff"), None)
    if diff is None:
        yield "the box has no '.. code-block:: diff' from the code that raises to the code that does not"
    else:
        yield from _faults_of_diff(diff.astext().splitlines(), [_lines(cell) for cell in cells])
    if not any(node.astext().startswith("Not this") for node in box.findall(nodes.strong)):
        yield "the box does not say what only hides the error: begin a paragraph with '**Not this:**'"
    blocks = list(document.findall(nodes.literal_block))
    quoted = [block for block in blocks if quoted_message.CLASS in block["classes"]]
    title = next(iter(document.findall(nodes.title))).astext()
    first = [block for block in blocks if is_output(block)][:1]
    if not any(title in " ".join(block.astext().split()) for block in first + quoted):
        yield (
            f"the first output is not the message of the title: {title!r}; "
            "one that this build cannot raise may stand in a '.. quoted-message:: ADDRESS'"
        )


def _faults_of_diff(diff: list[str], cells: list[set[str]]) -> Iterator[str]:
    if len(diff) not in LINES or not any(line.startswith(("-", "+")) for line in diff):
        yield f"a diff has {LINES.start} to {LINES.stop - 1} lines, with '-' or '+' before those that change"
    for line in diff:
        sign, code = line[:1], _code(line[1:])
        if code and sign in ("-", " ") and code not in cells[0]:
            yield f"'{code}' is in the diff and not in the first code cell, which raises the message"
        if code and sign in ("+", " ") and not any(code in cell for cell in cells[1:]):
            yield f"'{code}' is in the diff and in no code cell after the first, so it did not run"


def _lines(code: str) -> set[str]:
    return {_code(line) for line in code.splitlines()}


def _code(line: str) -> str:
    """A line without its indentation and without a comment at its end."""
    return line.partition("  # ")[0].strip()


def check(app: Sphinx, document: nodes.document) -> None:
    """Report the faults of a page about an error, with its script. Connected to ``doctree-read``."""
    page = app.env.docname
    if not page.startswith(CHAPTER) or page.endswith("/index"):
        return
    copied = Path(app.srcdir) / f"{page}.py"
    cells = list(sphinx_gallery_patches.read_code_cells(copied).values())
    for fault in faults(document, cells):
        logger.error("examples/errors/%s: %s", copied.name, fault)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", check)
