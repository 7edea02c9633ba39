"""Find the links to the script and the notebook at the end of a page: sphinx-gallery's, or those of ``notebooks``."""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes


def downloads_of(document: nodes.document) -> nodes.container | None:
    """The box with the links; None on a page without."""
    boxes = document.findall(nodes.container)
    return next((box for box in boxes if "sphx-glr-footer" in box["classes"]), None)


def put_before_downloads(document: nodes.document, node: nodes.Node) -> bool:
    """Put ``node`` before the links, and before the ``only`` node around them. Return whether the page has any."""
    box = downloads_of(document)
    if box is None:
        return False
    last = box.parent if isinstance(box.parent, addnodes.only) else box
    last.parent.insert(last.parent.index(last), node)
    return True
