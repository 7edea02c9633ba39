"""``.. page-filter:: KIND`` stands above many entries of a page, and leaves those of them that have the words a reader types.

The form stands in the page, so that nothing moves when its script, ``conf/static/page_filter.js``, comes. Without scripts it is
hidden, and the page is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


@dataclass(frozen=True, slots=True)
class Entries:
    """What a filter leaves or hides."""

    label: str
    count: str
    """With ``{shown}`` and ``{all}``."""
    items: str
    """A CSS selector of entries. To a ``dt`` belongs each ``dd`` after it."""
    groups: str
    """A selector of what is hidden when no entry in it is left; of folds also what opens when something is typed."""
    head_only: bool = False
    """Look into the ``dt`` alone."""


KINDS = {
    "symptoms": Entries("Filter the list", "{shown} of {all} pages", ".symptoms li", ".symptoms > details"),
    "terms": Entries("Filter the terms", "{shown} of {all} terms", "dl.glossary > dt", ""),
    "names": Entries(
        "Filter the names",
        "{shown} of {all} names",
        "dl.names-used > dt",
        "article section section",
        head_only=True,
    ),
    "rows": Entries(
        "Filter the rows",
        "{shown} of {all} rows",
        "article section section section",
        "article section section:has(section)",
    ),
}


class PageFilter(SphinxDirective):
    """``.. page-filter:: KIND``; the kinds are those of ``KINDS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        kind = directives.choice(self.arguments[0], list(KINDS))
        return [nodes.raw("", form(kind), format="html")]


def form(kind: str) -> str:
    """The form of a filter, in the page's language."""
    entries = KINDS[kind]
    data = {"items": entries.items, "groups": entries.groups, "count": str(entries.count)}
    said = "".join(f' data-{name}="{escape(text)}"' for name, text in data.items())
    only = ' data-head-only=""' if entries.head_only else ""
    return (
        f'<form class="filter page-filter no-search"{said}{only}><label>{entries.label} '
        '<input type="search" autocomplete="off"></label><output aria-live="polite"></output></form>'
    )


def setup(app: Sphinx) -> None:
    app.add_directive("page-filter", PageFilter)
