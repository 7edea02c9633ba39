"""Make the sidebar of every page from that of the front page.

Sphinx and furo walk all pages to make the sidebar of each, so that the time to write a site grows with the square of its pages.
The theme still makes one, for the front page; in a copy of it links are led from elsewhere, and what is current is marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

_ENTRY = re.compile(r'<li class="(toctree-l\d+)( has-children)?"><a class="reference internal" href="([^"]*)">')
_CLOSED = re.compile(r'(<li class="[^"]* current[^"]*"><a [^>]*>(?:(?!</a>).)*</a><input aria-label="[^"]*")')
_CONTEXT = "atlas_toctree"


@dataclass(frozen=True, slots=True)
class Sidebar:
    """What the sidebars of all pages are made from, once for a build."""

    tree: str
    """As the front page has it, links and all, with nothing current."""
    above: Mapping[str, str]
    """The page above each page."""


def whole(app: Sphinx) -> Sidebar:
    """Made when the first page asks for it, and kept for the others."""
    if not hasattr(app, "_atlas_sidebar"):
        options = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}
        tree = get_navigation_tree(app.builder._get_local_toctree(app.config.root_doc, **options))
        above = {child: parent for parent, children in app.env.toctree_includes.items() for child in children}
        app._atlas_sidebar = Sidebar(tree, above)
    return app._atlas_sidebar


def for_page(tree: str, address: str, lineage: list[str]) -> str:
    """The sidebar of one page.

    :param tree: as a ``Sidebar`` has it.
    :param address: of the page, from the root of the site.
    :param lineage: the addresses of the page and of the pages above it.

    >>> tree = '<li class="toctree-l1"><a class="reference internal" href="a/b.html">B</a></li>'
    >>> for_page(tree, "a/c.html", ["a/c.html"])
    '<li class="toctree-l1"><a class="reference internal" href="b.html">B</a></li>'
    >>> for_page(tree, "a/b.html", ["a/b.html"])
    '<li class="toctree-l1 current current-page"><a class="current reference internal" href="#">B</a></li>'
    """

    def entry(found: re.Match[str]) -> str:
        level, children, target = found[1], found[2] or "", found[3]
        if target == address:
            return (
                f'<li class="{level} current{children} current-page"><a class="current reference internal" href="#">'
            )
        current = " current" if target in lineage else ""
        link = relative_uri(address, target)
        return f'<li class="{level}{current}{children}"><a class="reference internal" href="{link}">'

    return _CLOSED.sub(r'\1 checked=""', _ENTRY.sub(entry, tree))


def lineage(above: Mapping[str, str], page: str) -> list[str]:
    """The page and those above it, as far as the front page's toctrees lead.

    >>> lineage({"graphs/one": "graphs/index", "graphs/index": "index"}, "graphs/one")
    ['graphs/one', 'graphs/index', 'index']
    """
    found = [page]
    while found[-1] in above and above[found[-1]] not in found:
        found.append(above[found[-1]])
    return found


def before(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Keep the theme from walking all pages. Connected to ``html-page-context``, before furo."""
    if _has_own(app, name):
        context[_CONTEXT] = context.pop("toctree")


def after(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Connected to ``html-page-context``, after furo."""
    if _CONTEXT in context:
        context["toctree"] = context.pop(_CONTEXT)
        sidebar = whole(app)
        addresses = [app.builder.get_target_uri(page) for page in lineage(sidebar.above, name)]
        context["furo_navigation_tree"] = for_page(sidebar.tree, addresses[0], addresses)


def _has_own(app: Sphinx, name: str) -> bool:
    """Whether the page is at one address: the page for what is not found is shown at any."""
    return app.builder.format == "html" and name != app.config.notfound_pagename


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", before, priority=450)
    app.connect("html-page-context", after, priority=550)
