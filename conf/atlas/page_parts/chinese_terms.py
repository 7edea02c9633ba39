"""A Chinese term says that it is Chinese: a screen reader changes its voice, and a browser takes a Chinese font."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

CHINESE = re.compile(r"[\u3400-\u9fff]")
#: docutils writes a class that begins with ``language-`` as the attribute ``lang``.
_CLASS = "language-zh"


def mark(app: Sphinx, document: nodes.document) -> None:
    """Connected to ``doctree-read``."""
    for term in document.findall(nodes.emphasis):
        if CHINESE.search(term.astext()):
            term["classes"].append(_CLASS)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", mark)
