"""What an author can put on a page: a box to search from, and the list of all pages.

``.. search-box::`` is a form. Without JavaScript it leads to the page of the search, which lists all pages; with it, what is
typed or pasted is answered below the box. ``.. all-pages::`` is that list.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from atlas.page_parts.navigation_order import in_order
from atlas.toolbox import link_to

from .index import PAGE, kind


class search_box(nodes.General, nodes.Element):
    """A box. Attributes ``label``, and ``rows``: how many lines of a traceback it shows."""


class all_pages(nodes.General, nodes.Element):
    """The place of the list of all pages."""


class SearchBox(SphinxDirective):
    """``.. search-box:: LABEL``, with ``:rows:``, the lines that it shows."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"rows": directives.positive_int}  # noqa: RUF012 -- as docutils has it

    def run(self) -> list[nodes.Node]:
        return [search_box(label=" ".join(self.arguments[0].split()), rows=self.options.get("rows", 1))]


class AllPages(SphinxDirective):
    """``.. all-pages::``: the titles of all pages but those that list other pages, by chapter."""

    def run(self) -> list[nodes.Node]:
        return [all_pages()]


def form(label: str, rows: int, action: str) -> str:
    """The HTML of a box.

    >>> form("Search", 1, "search.html").startswith('<form class="search-here" role="search" action="search.html"')
    True
    """
    return (
        f'<form class="search-here" role="search" action="{html.escape(action)}"><label>{html.escape(label)}'
        f'<textarea name="q" rows="{rows}" autocomplete="off" spellcheck="false" required></textarea></label>'
        f"<button>{html.escape('Search')}</button></form>"
    )


def _visit_box(self: Any, node: search_box) -> None:
    action = self.builder.get_relative_uri(self.builder.current_docname, PAGE)
    self.body.append(form(node["label"], node["rows"], action))
    raise nodes.SkipNode


def _skip(self: Any, node: nodes.Element) -> None:
    raise nodes.SkipNode


def _listed(env: BuildEnvironment) -> list[tuple[str, str]]:
    """Name and title of each page that is listed, in the order of the navigation; those outside of it come last."""
    order = dict.fromkeys([*in_order(env), *sorted(env.found_docs)])
    return [(page, env.titles[page].astext()) for page in order if page in env.titles and kind(page) != "i"]


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list in. Connected to ``doctree-resolved``.

    A page written earlier keeps the old title until it is written again.
    """
    for place in list(document.findall(all_pages)):
        chapters: dict[str, nodes.bullet_list] = {}
        for name, title in _listed(app.env):
            chapter = name.rpartition("/")[0]
            item = nodes.list_item("", nodes.paragraph("", "", link_to(app, page, name, title)))
            chapters.setdefault(chapter, nodes.bullet_list()).append(item)
        parts: list[nodes.Node] = []
        for chapter, pages in chapters.items():
            parts += [nodes.rubric("", _chapter_title(app.env, chapter)), pages]
        place.replace_self(nodes.container("", *parts, classes=["all-pages", "no-search"]))


def _chapter_title(env: BuildEnvironment, chapter: str) -> str:
    index = f"{chapter}/index"
    if index in env.titles:
        return env.titles[index].astext()
    return {"": "The site", "guide": "Guide", "reference": "Reference", "about": "About"}.get(chapter, chapter)


def setup(app: Sphinx) -> None:
    app.add_node(search_box, html=(_visit_box, None), text=(_skip, None), gettext=(_skip, None))
    app.add_node(all_pages, html=(_skip, None), text=(_skip, None), gettext=(_skip, None))
    app.add_directive("search-box", SearchBox)
    app.add_directive("all-pages", AllPages)
    app.connect("doctree-resolved", fill)
