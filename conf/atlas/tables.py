"""Long tables, and filters above them and above other long lists.

A table of hundreds of rows is written as HTML: as nodes of Sphinx, its cells would take longer than all other pages. Without
JavaScript it is whole. With it, the first rows are shown, a filter stands above them, and a click on a head sorts them.

``.. page-filter:: KIND`` stands above many entries of a page, and leaves those of them that have the words a reader types.
``conf/static/filters.js`` does both. The forms stand in the page, so that nothing moves when it comes. Without scripts they are
hidden, and the page is whole.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

# -- Long tables ----------------------------------------------------------------------------------


def make_long_table(kind: str, label: str, heads: Sequence[str], body: str, said: dict[str, Any]) -> nodes.raw:
    """The table with its head, and what the script says above it.

    :param kind: the table's own class, for the widths of its columns in ``atlas.css``.
    :param label: what it is, for who cannot see it.
    :param body: the rows as HTML; the first cell of each is a ``th``. The filter looks into the first two, or ``cells``.
    :param said: the filter's sentences: ``name``, ``count``, ``none``; with a choice of kinds of rows also ``kind`` and
        ``kinds``, and each row says in ``data-kinds`` of which it is.
    """
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    turns = [f'<option value="{at}">{text} ↑<option value="-{at}">{text} ↓' for at, text in enumerate(heads, 1)]
    data = {"items": f".{kind} tbody tr", "groups": f".{kind}", "sort": "Sort by this column"}
    data |= {name: said[name] for name in ("count", "none", "cells") if name in said}
    fields = f'<label>{said["name"]} <input type="search" name="name" autocomplete="off"></label>'
    if "kinds" in said:
        kinds = "".join(f'<option value="{key}">{html.escape(name)}</option>' for key, name in said["kinds"].items())
        fields += f'<label>{said["kind"]} <select name="that">{kinds}</select></label>'
    text = (
        f'<div class="wide"><form class="filter of-rows no-search"{_write_data(data)}>{fields}'
        f'<label class="sort">Order <select name="sort"><option value="">as listed{"".join(turns)}</select></label>'
        f'<output aria-live="polite">{said["count"].removeprefix("{shown} of ").format(all=body.count("<tr"))}</output></form>'
        f'<div class="table-wrapper long-table {kind}" role="region" aria-label="{label}">'
        f'<table class="docutils"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        '<button type="button" hidden></button></div>'
    )
    return nodes.raw("", text, format="html")


def let_break(name: str) -> str:
    """The name as HTML, with places where a narrow column may break it; a short one fits.

    >>> let_break("linalg.lu_factor"), let_break("LogSigmoidForward"), let_break("LogSoftmax")
    ('linalg.<wbr>lu_<wbr>factor', 'Log<wbr>Sigmoid<wbr>Forward', 'LogSoftmax')
    """
    places = r"(?<=[._:])(?=\w)|(?<=\w\()(?=\w)|(?<=[a-z])(?=[A-Z])"
    return re.sub(places, "<wbr>", html.escape(name)) if len(name) > 11 else html.escape(name)


def mark_code(text: str) -> str:
    """Text as HTML, in which what stands between backticks is code.

    >>> mark_code("`zero_grad` & more")
    '<code>zero_grad</code> &amp; more'
    """
    return re.sub("`(.+?)`", r"<code>\1</code>", html.escape(text, quote=False))


# -- Filters --------------------------------------------------------------------------------------


#: What the script of a filter is told: ``items``, a selector of entries, of which each ``dt`` has the ``dd`` after it.
#: ``groups``, one of what is hidden when no entry in it is left, and of folds that open when something is typed. ``count``, its
#: words. With ``head-only`` it looks into the ``dt`` alone.
KINDS = {
    "symptoms": {"items": ".symptoms li", "groups": ".symptoms > details", "count": "{shown} of {all} entries"},
    "terms": {"items": "dl.glossary > dt", "groups": "", "count": "{shown} of {all} terms"},
    "names": {
        "items": "dl.names-used > dt",
        "groups": "article section section",
        "count": "{shown} of {all} names",
        "head-only": "",
    },
    "calls": {"items": ".calls tbody tr", "groups": "section section", "count": "{shown} of {all} calls"},
    "rows": {
        "items": "article section section section",
        "groups": "article section section:has(section)",
        "count": "{shown} of {all} rows",
    },
}


class PageFilter(SphinxDirective):
    """``.. page-filter:: KIND``; the kinds are those of ``KINDS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        kind = self.arguments[0]
        if kind not in KINDS:
            raise self.error(f"there is no filter of {kind!r}: choose from {', '.join(KINDS)}")
        return [make_filter_form(kind)]


def make_filter_form(kind: str) -> nodes.raw:
    """The form of a filter."""
    label = f"Filter the {'list' if kind == 'symptoms' else kind}"
    text = (
        f'<form class="filter page-filter no-search"{_write_data(KINDS[kind])}>'
        f'<label>{label} <input type="search" autocomplete="off"></label><output aria-live="polite"></output></form>'
    )
    return nodes.raw("", text, format="html")


def _write_data(data: dict[str, str]) -> str:
    return "".join(f' data-{name}="{html.escape(text)}"' for name, text in data.items())


# -- Widths of columns ----------------------------------------------------------------------------


class KeepWidths(SphinxTransform):
    """Remove MyST's mark from a table whose directive has set widths. Any other table keeps it.

    With given widths, columns do not move while the rows still arrive. MyST marks every table ``colwidths-auto``, and docutils
    then ignores the widths: https://github.com/executablebooks/MyST-Parser/issues/793. The pull request #795 is open; delete
    this class when it is released (MyST-Parser 5.2 has the bug).
    """

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"] = [mark for mark in table["classes"] if mark != "colwidths-auto"]


def setup(app: Sphinx) -> None:
    app.add_directive("page-filter", PageFilter)
    app.add_transform(KeepWidths)
