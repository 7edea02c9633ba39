"""The sidebar of a page names the pages of its own chapter, the other chapters, and the pages that stand in no chapter.

furo asks Sphinx for a tree of all pages, so that each page, and the time to write it, would grow with the site. Asked to
collapse the tree, Sphinx opens the branches above the page alone and does not walk the others.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def collapse(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Give furo the collapsed tree, whatever it asks for.

    Connected to ``html-page-context``: after sphinx-notfound-page (400), which makes a tree of its own for the page 404, and
    before furo (500).
    """
    if toctree := context.get("toctree"):
        context["toctree"] = lambda **options: toctree(**options | {"collapse": True})


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", collapse, priority=450)
