"""What a page's head says of it, and marks in its text for ``atlas.css`` and for screen readers.

A search engine, a shared link, a preview and ``llms.txt`` say of a page its first sentences, each of them whole.
sphinxext-opengraph would cut the text within a sentence. It uses the description that a page's metadata holds, if there is one.
The functions that read a page's text are for other features too.

Columns of numbers in the tables of outputs stand to the right, so that digits of one place stand below each other. pandas
writes the tables, and knows no such class. Each gets one for each such column, ``right-3`` for the third.
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


# -- Marks in the text ----------------------------------------------------------------------------

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
    connect_for_pages(app, "doctree-read", keep_description)
    connect_for_pages(app, "html-page-context", add_description, 400)
