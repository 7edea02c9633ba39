"""Tables of hundreds of rows, written as HTML: as nodes of Sphinx, their cells would take longer than all other pages.

Without JavaScript such a table is whole. ``conf/static/long_table.js`` adds a filter above it, and sorts it by a column.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

from atlas.toolbox import json_for_script


def region(kind: str, label: str, heads: Iterable[str], body: str, said: dict[str, Any]) -> str:
    """The table with its head, and what the script says above it.

    :param kind: the table's own class, for the widths of its columns in ``atlas.css``.
    :param label: what it is, for who cannot see it.
    :param body: the rows as HTML; the first cell of each is a ``th``. The filter looks into the first two cells.
    :param said: the filter's sentences: ``name``, ``count``, ``none``; with a choice of kinds of rows also ``kind`` and
        ``kinds``, and each row says in ``data-kinds`` of which it is.
    """
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    return (
        '<div class="filter-place"></div>'
        f'<div class="table-wrapper long-table {kind}" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="docutils"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"{json_for_script({**said, 'sort': 'Sort by this column'})}</div>"
    )


def may_break(name: str) -> str:
    """The name with places where a narrow column may break it.

    >>> may_break("linalg.lu_factor"), may_break("LogSoftmax")
    ('linalg.<wbr>lu_<wbr>factor', 'Log<wbr>Softmax')
    """
    return re.sub(r"(?<=[._:(])(?=\w)|(?<=[a-z])(?=[A-Z])", "<wbr>", html.escape(name))
