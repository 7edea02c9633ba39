"""How long a page takes to read: its words of prose and its lines of code, at speeds that the chapters' pages state."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes

from atlas.folds import details

WORDS, LINES = 150, 10  # in a minute, of somebody who reads English as a second language
STEP = 5  # minutes: more would claim to know the reader
#: What is looked at, looked up, or unfolded by those who want it.
_NOT_READ = (nodes.raw, nodes.comment, nodes.legend, addnodes.index, details)
_NO_PROSE = {"sphx-glr-footer", "sphx-glr-download-link-note", "claims", "varies-note", "no-search", "leads-on"}
_OUTPUT = {"none", "text"}


def minutes(document: nodes.document) -> int:
    """The minutes, in steps of five; never none."""
    words, lines = 0, 0
    for kind, text in _read(document):
        if kind == "code":
            lines += sum(bool(line.strip()) for line in text.splitlines())
        else:
            words += len(text.split())
    return rounded(words, lines)


def rounded(words: int, lines: int) -> int:
    """
    >>> rounded(900, 60), rounded(150, 0), rounded(0, 0)
    (10, 5, 5)
    """
    return max(STEP, STEP * round((words / WORDS + lines / LINES) / STEP))


def _read(node: nodes.Node) -> Iterator[tuple[str, str]]:
    """The pieces of text that a reader goes through, each with what it is."""
    if isinstance(node, _NOT_READ) or _NO_PROSE & set(getattr(node, "attributes", {}).get("classes", [])):
        return
    if isinstance(node, nodes.literal_block):
        if str(node.get("language", "")).lower() not in _OUTPUT:
            yield "code", node.astext()
    elif isinstance(node, nodes.TextElement):
        yield "prose", node.astext()
    else:
        for child in node.children:
            yield from _read(child)
