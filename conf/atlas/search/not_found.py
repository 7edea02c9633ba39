"""The page for an address that leads nowhere: the search, asked for the words of the address, and its nearest pages."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from .directives import form
from .index import PAGE


def fill(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Connected to ``html-page-context``, after sphinx-notfound-page, whose links lead from any depth."""
    if name == app.config.notfound_pagename and PAGE in app.env.found_docs:
        title, words = (
            "Page not found",
            "There is no page at this address. It may have moved: what were you looking for?",
        )
        box = form("Words, a name, or a traceback", 1, context["pathto"](PAGE)).replace(
            'class="search-here"', 'class="search-here" data-asked-by-address', 1
        )
        context["title"] = title
        context["body"] = f"<h1>{escape(title)}</h1><p>{escape(words)}</p>{box}"


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", fill)
