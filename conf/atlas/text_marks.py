"""Marks in a page's text for ``atlas.css`` and for screen readers: columns of numbers, words that are Chinese.

Columns of numbers in the tables of outputs stand to the right, so that digits of one place stand below each other. pandas
writes the tables, and knows no such class. Each gets one for each such column, ``right-3`` for the third.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

from atlas.page_store import connect_for_pages

#: As many columns as ``atlas.css`` has rules for.
LAST = 9
_TABLE = re.compile(r'<table border="1" class="dataframe">(.*?)</table>', re.DOTALL)
_ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<(t[dh])([^>]*)>(.*?)</t[dh]>", re.DOTALL)
_NUMBER = re.compile(
    r"[-+\N{MINUS SIGN}]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|nan|inf)\s*(?:%|[KMG]i?B|[mµun]?s|B)?", re.IGNORECASE
)
_NOTHING = {"", "-", "\N{EN DASH}", "none"}
_CHINESE = re.compile(r"[\u3400-\u9fff]")


def find_number_columns(table: str) -> list[int]:
    """Which columns hold numbers, counted from 1; none of a table whose cells span others.

    >>> find_number_columns("<tr><th>a</th><td>1.5</td><td>x</td></tr><tr><th>b</th><td>-</td><td>2</td></tr>")
    [2]
    """
    rows = [_CELL.findall(row) for row in _ROW.findall(table)]
    body = [row for row in rows if any(tag == "td" for tag, _attributes, _text in row)]
    if any("span" in attributes for row in rows for _tag, attributes, _text in row) or len(set(map(len, body))) != 1:
        return []
    found = []
    for place, cells in enumerate(zip(*body, strict=True), 1):
        texts = [text.strip() for tag, _attributes, text in cells if tag == "td"]
        numbers = [text for text in texts if text.lower() not in _NOTHING]
        if numbers and all(map(_NUMBER.fullmatch, numbers)) and place <= LAST:
            found.append(place)
    return found


def mark_number_columns(text: str) -> str:
    """The HTML of an output, with the classes on its tables."""

    def add_classes(table: re.Match[str]) -> str:
        classes = "".join(f" right-{place}" for place in find_number_columns(table[1]))
        return table[0].replace('class="dataframe"', f'class="dataframe{classes}"', 1)

    return _TABLE.sub(add_classes, text)


def mark_text(app: Sphinx, document: nodes.document) -> None:
    """Put the marks in. Connected to ``doctree-read``.

    A term in italics with a Chinese sign in it is Chinese: a screen reader changes its voice, a browser takes a Chinese font.
    """
    for raw in document.findall(nodes.raw):
        if raw.get("format") == "html" and 'class="dataframe"' in raw.astext():
            raw[:] = [nodes.Text(mark_number_columns(raw.astext()))]
    for term in document.findall(nodes.emphasis):
        if _CHINESE.search(term.astext()):
            term["classes"].append("language-zh")  # docutils writes this class as the attribute ``lang``


def setup(app: Sphinx) -> None:
    connect_for_pages(app, "doctree-read", mark_text)
