"""Sphinx's own search is not made: no index, no page, and no scripts for them on every page."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

#: It marks words on the page to which a result leads, and it has keys for the search.
_SCRIPTS = ("_static/sphinx_highlight.js", "_static/doctools.js")


def no_index(app: Sphinx) -> None:
    """Connected to ``builder-inited``."""
    if app.builder.name == "html":
        app.builder.search = False


def no_scripts(
    app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Connected to ``html-page-context``."""
    context["script_files"] = [script for script in context["script_files"] if script.filename not in _SCRIPTS]


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", no_index)
    app.connect("html-page-context", no_scripts)
