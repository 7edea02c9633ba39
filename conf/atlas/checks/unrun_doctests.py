"""Every ``>>>`` of a page under ``docs/`` must be one that ``nox -s doctest`` runs.

In Markdown only the ``{doctest}`` directive is run. A plain fence with ``>>>`` looks the same to the reader and is never
tried, so it is an error here. A ``>>>`` outside of any fence is one too: Markdown takes it for a quote in a quote in a quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

_PROMPT = re.compile(r"^\s*>>>( |$)", re.MULTILINE)


def untested(document: nodes.document) -> Iterator[nodes.Element]:
    """The blocks with prompts that no doctest runs. Outputs of code cells may show prompts."""
    for kind in (nodes.literal_block, nodes.doctest_block):
        for block in document.findall(kind):
            is_left_alone = "testnodetype" in block or "output" in block["classes"]  # marks of Sphinx and of MyST-NB
            if _PROMPT.search(block.astext()) and not is_left_alone:
                yield block
    for quote in document.findall(nodes.block_quote):
        around = [quote.parent, quote.parent.parent]
        if all(isinstance(node, nodes.block_quote) for node in around) and not _is_quoted(around[-1]):
            yield quote


def _is_quoted(node: nodes.Element) -> bool:
    return isinstance(node.parent, nodes.block_quote)


def check(app: Sphinx, document: nodes.document) -> None:
    """Report untested prompts of a Markdown page with file and line. Connected to ``doctree-read``."""
    if app.env.doc2path(app.env.docname).suffix == ".md":
        for block in untested(document):
            message = "this example is never run: put it into a {doctest} directive, ```{doctest} … ```"
            logger.error(message, location=block)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", check)
