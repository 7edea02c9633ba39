"""The pieces of Python code that a page shows, and where they stand in its blocks of code."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from dataclasses import dataclass, replace

from docutils import nodes

from .code_reader import Use

_PYTHON = {"python", "python3", "ipython", "ipython3", "pycon", "default"}


@dataclass(frozen=True, slots=True)
class Piece:
    """
    :ivar line: of the block, where the piece begins.
    :ivar indent: the width of what stands before each of its lines: the prompt of a session.
    """

    text: str
    block: nodes.literal_block
    line: int = 0
    indent: int = 0

    def in_block(self, use: Use) -> Use:
        """The same use, with its place in the block."""
        line, start, end = use.line + self.line, use.start + self.indent, use.end + self.indent
        return replace(use, line=line, start=start, end=end)


def pieces(document: nodes.document) -> Iterator[Piece]:
    """A block is one piece; a session with prompts is one for each prompt."""
    for block in document.findall(nodes.literal_block):
        if str(block.get("language", "")).lower() in _PYTHON:
            text = block.astext()
            try:
                examples = doctest.DocTestParser().get_examples(text)
            except ValueError:  # not a session with prompts
                examples = []
            for example in examples:
                yield Piece(example.source, block, example.lineno, example.indent + len(">>> "))
            if not examples:
                yield Piece(text, block)
