"""What a search engine, a shared link, a preview and ``llms.txt`` say of a page: its first sentences, each of them whole.

sphinxext-opengraph would cut the text within a sentence. It uses the description that a page's metadata holds, if there is one.
The functions that read a page's text are for other features too.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from atlas.boxes import IN_SHORT
from atlas.page_store import connect_for_pages
from atlas.toolbox import first_sentences, one_line

#: MathML that says by its place what it means, and what of MathML is no sign of the formula.
_STACKED = re.compile(r"<m(?:frac|sqrt|root|table|under|over)")
_MARKUP = re.compile(r"<annotation.*?</annotation>|<[^>]+>", re.DOTALL)


def make_description(document: nodes.document) -> str:
    """The first paragraph of the page's *In short* box, or else of its text: as many whole sentences as fit.

    Empty for a page without one.
    """
    paragraph = find_first_paragraph(document)
    return "" if paragraph is None else first_sentences(make_plain_text(paragraph))


def find_first_paragraph(document: nodes.document) -> nodes.paragraph | None:
    """The first paragraph of the *In short* box, or else of the text; None without any."""
    for paragraph in document.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section) or IN_SHORT in paragraph.parent.get("classes", []):
            return paragraph
    return None


def make_plain_text(node: nodes.Node) -> str:
    """The text of a node on one line. Of a formula with commands of TeX there are its signs, if they stand in one line."""
    return one_line(_join_signs(node))


def _join_signs(node: nodes.Node) -> str:
    if isinstance(node, nodes.math) and "\\" in node.astext() and not _STACKED.search(node["mathml"]):
        return html.unescape(_MARKUP.sub("", node["mathml"]))
    return "".join(map(_join_signs, node.children)) if node.children else node.astext()


def keep_description(app: Sphinx, document: nodes.document) -> None:
    """Keep a page's description with the page. Connected to ``doctree-read``."""
    if found := make_description(document):
        app.env.metadata[app.env.docname].setdefault("og:description", found)


def add_description(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Put the description into the page's head. Connected to ``html-page-context``, before sphinxext-opengraph."""
    if found := (context.get("meta") or {}).get("og:description"):
        context["metatags"] += f'\n<meta name="description" content="{html.escape(found)}">'


def setup(app: Sphinx) -> None:
    connect_for_pages(app, "doctree-read", keep_description)
    connect_for_pages(app, "html-page-context", add_description, 400)
