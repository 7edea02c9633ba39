"""Leave comments such as ``# graph:`` out of the code that a page shows.

``# graph:``, ``# figure:``, ``# varies:`` and ``# predict:`` ask this site for something. It stands on the page with the same
words, as a caption, a note or a question. The script that a reader downloads keeps the comments.

A cell of which nothing is left, because all of it was requests or hidden lines, goes as a whole.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

from atlas.cells.request_comments import BEGINS, GOES_ON

_REQUEST = re.compile(rf"^{BEGINS}.*(?:\n{GOES_ON}.*)*(?:\n|\Z)", re.MULTILINE)
_BETWEEN_EMPTY_LINES = re.compile(
    rf"(?<=\n\n)(?:{_REQUEST.pattern})+\n+|(?<=\n\n)(?:{_REQUEST.pattern})+\Z", re.MULTILINE
)


def without_requests(code: str) -> str:
    r"""The code without its requests. Of the empty lines above and below a request, those below go too.

    >>> without_requests("y = x * x\n\n# figure: A line\n#   that rises\n\nprint(y)")
    'y = x * x\n\nprint(y)'
    """
    return _REQUEST.sub("", _BETWEEN_EMPTY_LINES.sub("", code)).strip("\n")


def hide(app: Sphinx, doctree: nodes.document) -> None:
    """Rewrite the code cells of an example's page. Connected to ``doctree-read``."""
    if not app.env.docname.startswith("gallery/"):
        return
    for block in list(doctree.findall(nodes.literal_block)):
        code = block.astext()
        if _REQUEST.search(code):
            block.rawsource = without_requests(code)
            block[:] = [nodes.Text(block.rawsource)]
        if not block.astext().strip():
            block.parent.remove(block)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", hide)
