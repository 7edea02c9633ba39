"""Columns of numbers in the tables of outputs stand to the right, so that digits of one place stand below each other.

pandas writes the tables. Each gets a class for each such column, ``right-3`` for the third; ``atlas.css`` has the rules.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

#: As many columns as ``atlas.css`` has rules for.
LAST = 9
_TABLE = re.compile(r'<table border="1" class="dataframe">(.*?)</table>', re.DOTALL)
_ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<(t[dh])([^>]*)>(.*?)</t[dh]>", re.DOTALL)
_NUMBER = re.compile(
    r"[-+\N{MINUS SIGN}]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|nan|inf)\s*(?:%|[KMG]i?B|[mµun]?s|B)?", re.IGNORECASE
)
_NOTHING = {"", "-", "\N{EN DASH}", "none"}


def columns(table: str) -> list[int]:
    """Which columns hold numbers, counted from 1; none of a table whose cells span others.

    >>> columns("<tr><th>a</th><td>1.5</td><td>x</td></tr><tr><th>b</th><td>-</td><td>2</td></tr>")
    [2]
    """
    rows = [_CELL.findall(row) for row in _ROW.findall(table)]
    if not rows or any("span" in attributes for row in rows for _tag, attributes, _text in row):
        return []
    body = [row for row in rows if any(tag == "td" for tag, _attributes, _text in row)]
    if len({len(row) for row in body}) != 1:
        return []
    found = []
    for place, cells in enumerate(zip(*body, strict=True), 1):
        texts = [text.strip() for tag, _attributes, text in cells if tag == "td"]
        numbers = [text for text in texts if text.lower() not in _NOTHING]
        if numbers and all(map(_NUMBER.fullmatch, numbers)) and place <= LAST:
            found.append(place)
    return found


def marked(text: str) -> str:
    """The HTML of an output, with the classes on its tables."""
    return _TABLE.sub(_with_classes, text)


def _with_classes(table: re.Match[str]) -> str:
    classes = "".join(f" right-{place}" for place in columns(table[1]))
    return table[0].replace('class="dataframe"', f'class="dataframe{classes}"', 1)


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Connected to ``doctree-read``."""
    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html" and 'class="dataframe"' in raw.astext():
            raw[:] = [nodes.Text(marked(raw.astext()))]


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", mark)
