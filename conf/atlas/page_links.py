"""Links that our code puts on a page."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def link_to(app: Sphinx, page: str, target: str, words: str | nodes.Node = "", *, after: str = "") -> nodes.reference:
    """A link from ``page`` to the page ``target`` of this site.

    :param words: what the reader clicks; the target's title if empty.
    :param after: what follows the address of the page: ``#anchor``, ``?query``.
    """
    shown = words if isinstance(words, nodes.Node) else nodes.Text(words or app.env.titles[target].astext())
    address = app.builder.get_relative_uri(page, target) + after
    return nodes.reference("", "", shown, refuri=address, internal=True)
