"""The picture that a shared link to a page shows: the page's title and its first figure, drawn by `picture_card`.

It is made when the page is written, and again only if title or figure have changed. A page without a figure has the site's
mark. sphinxext-opengraph writes the tag from the page's metadata.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "_shared"
_FIGURE = re.compile(
    r'<svg\s(?:[^">]|"[^"]*")*?class="(?:graph|plot)[ "].*?</svg>', re.DOTALL
)  # a label may have a ">"
_LABEL = re.compile(r'\baria-label="([^"]*)"')


def path_of(page: str) -> str:
    """Where the picture of a page is, from the root of the site."""
    return f"{FOLDER}/{page}.png"


def first_figure(document: nodes.document) -> str:
    """The SVG of the first graph or plot of a page; empty for a page without one."""
    for node in document.findall(nodes.raw):
        if node.get("format") == "html" and (found := _FIGURE.search(node.astext())):
            return found[0]
    return ""


def make(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Draw the picture, and say where it is. Connected to ``html-page-context``, before sphinxext-opengraph."""
    if document is None or app.builder.name != "html":
        return
    from . import picture_card  # with matplotlib and Pillow, for which a build that writes no page need not wait

    figure = first_figure(document)
    title = app.env.titles[name].astext()
    mark = Path(app.confdir, app.config.html_logo).read_text(encoding="utf-8")
    card = picture_card.card(title, figure, app.config.project, mark)
    path = Path(app.outdir, path_of(name))
    if not picture_card.is_of(path, card):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture_card.png(card))
    label = _LABEL.search(figure)
    context["meta"] = (context.get("meta") or {}) | {
        "og:image": path_of(name),
        "og:image:alt": html.unescape(label[1]) if label else title,
        "og:image:width": str(picture_card.WIDTH),
        "og:image:height": str(picture_card.HEIGHT),
    }
    context["metatags"] += '\n<meta name="twitter:card" content="summary_large_image">'


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", make, priority=400)
