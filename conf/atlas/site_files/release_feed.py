"""``release-notes.atom``: the release notes as a feed, by RFC 4287, each section of the page an entry.

The heading of a section is a day and a title. The day is the entry's time and, with the page's address, its id: a clock says
neither, and a title may be mended. ablog was tried, which wants a blog with pages of its own. feedgen writes what is given to
it, which is the smaller part, and needs lxml.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.toolbox import write_whole

logger = logging.getLogger(__name__)

PAGE = "about/release-notes"
FILE = "release-notes.atom"
_TYPE = "application/atom+xml"
_ATOM = "http://www.w3.org/2005/Atom"
_HEADING = re.compile(r"(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])): (\S.*)")
_ADDRESS = re.compile(r'(?<= )(href|src)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class _Entry:
    """A section of the release notes."""

    day: str
    title: str
    section: nodes.section


def _entries(document: nodes.document) -> Iterator[_Entry]:
    for section in _sections(document):
        if found := _HEADING.fullmatch(section[0].astext()):
            yield _Entry(found[1], found[2][0].upper() + found[2][1:], section)


def _sections(document: nodes.document) -> list[nodes.section]:
    page = next(document.findall(nodes.section))
    return [node for node in page if isinstance(node, nodes.section)]


def check(app: Sphinx, document: nodes.document) -> None:
    """See that each section has a day, and the newest is first. Connected to ``doctree-read``."""
    if app.env.docname != PAGE:
        return
    above = "9999"
    for section in _sections(document):
        found = _HEADING.fullmatch(section[0].astext())
        if not found:
            said = "the heading of a release note is a day and a title, as in '2026-11-23: The first edition'"
        elif found[1] >= above:
            said = f"a release note is older than the one above it: join it with that of {above}, or move it up"
        else:
            above = found[1]
            continue
        logger.error(said, location=section[0], type="atlas", subtype="feed")


def feed(app: Sphinx, document: nodes.document) -> str:
    """The feed as XML, of the release notes as they are written."""
    page = app.config.html_baseurl + app.builder.get_target_uri(PAGE)
    entries = list(_entries(document))
    root = ElementTree.Element("feed", {"xmlns": _ATOM, "xml:lang": app.config.language})
    _add(root, "id", app.config.html_baseurl + FILE)
    _add(root, "title", f"{app.config.project}: {app.env.titles[PAGE].astext()}")
    _add(root, "updated", _time(entries[0].day))
    _add(_add(root, "author"), "name", app.config.author)
    _add(root, "link", rel="self", type=_TYPE, href=app.config.html_baseurl + FILE)
    _add(root, "link", rel="alternate", type="text/html", href=page)
    for entry in entries:
        element = _add(root, "entry")
        _add(element, "id", f"{page}#{entry.day}")
        _add(element, "title", entry.title)
        _add(element, "updated", _time(entry.day))
        _add(element, "link", rel="alternate", type="text/html", href=f"{page}#{entry.section['ids'][0]}")
        _add(element, "content", _html(app, entry.section, page), type="html")
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add(parent: ElementTree.Element, name: str, text: str | None = None, **attributes: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = text
    return element


def _time(day: str) -> str:
    return f"{day}T00:00:00Z"


def _html(app: Sphinx, section: nodes.section, page: str) -> str:
    """What stands below the heading of a section, with whole addresses."""
    builder = app.builder
    builder.add_permalinks, before = False, builder.add_permalinks
    try:
        parts = [builder.render_partial(node.deepcopy())["fragment"] for node in section[1:]]
    finally:
        builder.add_permalinks = before
    return _ADDRESS.sub(
        lambda found: f'{found[1]}="{html.escape(urljoin(page, html.unescape(found[2])))}"', "".join(parts).strip()
    )


def write(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Write the feed when its page is written: no other build can render it. Connected to ``html-page-context``."""
    if app.builder.name == "html" and name == PAGE and any(_entries(document)):  # without one an error was reported
        write_whole(Path(app.outdir, FILE), feed(app, document))


def announce(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Say in each page's head where the feed is. Connected to ``html-page-context``."""
    if app.builder.name == "html" and PAGE in app.env.found_docs:
        title = html.escape(app.env.titles[PAGE].astext())
        context["metatags"] = (
            context.get("metatags", "")
            + f'\n<link rel="alternate" type="{_TYPE}" title="{title}" href="{context["pathto"](FILE, resource=True)}">'
        )


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", check)
    app.connect("html-page-context", announce)
    app.connect("html-page-context", write)
