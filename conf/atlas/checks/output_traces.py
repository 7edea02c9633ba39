"""An output of an example must not show a memory address or a path of the machine that built the page.

Either differs from build to build and says nothing to the reader. The same pass over the outputs marks long lines of prose, so
that they are wrapped, and the message of an error, which must stand whole on a phone; a line of a table is not broken. A table
that is a little wider than the column is marked to be set in smaller type; of one that is wider still the reader scrolls.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

TOO_LONG = 88
#: Characters that fit the column in smaller type: the profiler's own table has 116.
SMALL_TYPE = 118

#: Folders at the root of a machine in which sources, programs and temporary files are.
FOLDERS = ("home", "root", "tmp", "usr", "opt", "var", "work", "Users", "mnt", "private")

_FORBIDDEN = {
    "a memory address": re.compile(r"\b0x[0-9a-fA-F]{6,}\b"),
    "a path of this machine": re.compile(rf"(?:(?<=file://)|(?<![\w.:/]))/(?:{'|'.join(FOLDERS)})/[\w.-]+"),
}
_MESSAGE = re.compile(r"(?:^|\s)(?:\w+\.)*\w*(?:Error|Warning): ", re.MULTILINE)
_ALIGNED = re.compile(r"\S {3,}\S|-{6,}|={6,}")


def faults(output: str) -> list[str]:
    """What an output shows and must not, in words.

    >>> faults("<MulBackward0 object at 0x7f2a0ef090b0>")
    ['a memory address: 0x7f2a0ef090b0']
    >>> faults("w = 0.25, see torch/autograd")
    []
    """
    return [f"{what}: {match[0]}" for what, pattern in _FORBIDDEN.items() if (match := pattern.search(output))]


def is_prose(output: str) -> bool:
    """Whether the lines that are too long may be broken: none of them is part of a table.

    >>> is_prose("RuntimeError: " + "long words " * 20), is_prose("name    calls" + " " * 90 + "x")
    (True, False)
    """
    return not any(_ALIGNED.search(line) for line in output.splitlines() if len(line) > TOO_LONG)


def look(output: str) -> list[str]:
    """The class that ``atlas.css`` knows such an output by, if any.

    >>> look("fused=True   TypeError: no"), look("name" + " " * 90 + "calls"), look("name" + " " * 190 + "calls")
    (['wrap'], ['small-type'], [])
    """
    longest = max(map(len, output.splitlines()), default=0)
    if (_MESSAGE.search(output) or longest > TOO_LONG) and is_prose(output):
        return ["wrap"]
    return ["small-type"] if TOO_LONG < longest <= SMALL_TYPE else []


def check(app: Sphinx, doctree: nodes.document) -> None:
    """Report faults in the outputs of a page, and mark those to wrap. Connected to ``doctree-read``."""
    for block in doctree.findall(nodes.literal_block):
        if not is_output(block):
            continue
        text = block.astext()
        for fault in faults(text):
            logger.error(
                "the output of this example shows %s; print a name or a value instead", fault, location=block
            )
        block["classes"] += look(text)
    for raw in list(doctree.findall(nodes.raw)):
        text = raw.astext()
        if "sg-tag-list" in text:  # sphinx-gallery repeats its id; the site has no tags
            raw.parent.remove(raw)
        elif raw.get("format") == "html" and "output_subarea" in text:
            for fault in faults(text):
                logger.error("the table of this example shows %s; show a name or a value", fault, location=raw)
            # pandas leaves the corner of a table empty: an empty cell, not a heading of nothing
            raw[:] = [nodes.Text(text.replace("<th></th>", "<td></td>"))]


def is_output(block: nodes.literal_block) -> bool:
    """sphinx-gallery puts the class on the block, or on the quote around it."""
    return "sphx-glr-script-out" in [*block["classes"], *block.parent.get("classes", [])]


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", check)
