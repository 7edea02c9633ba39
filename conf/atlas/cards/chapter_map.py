"""The pages of a chapter as cards, in the order of reading: what each answers, its minutes, what to read before it.

They stand where sphinx-gallery puts cards of its own, which have a title and a picture of the whole first figure.
``conf/static/read_pages.js`` adds a tick to the pages that were read.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

from atlas.page_parts.navigation_order import in_order
from atlas.toolbox import link_to

from . import facts
from .before import before, short
from .card import card
from .minutes import LINES, WORDS
from .ticks import ticks

_FIRST = "sg-tag-list"  # sphinx-gallery's filter by tag, above its cards


class chapter_map(nodes.General, nodes.Element):
    """The place of the cards."""


class MapForCards(SphinxTransform):
    """Put the place of the map where sphinx-gallery's cards are."""

    default_priority = 410  # after the chapters that have a list of their own have taken their cards away

    def apply(self, **kwargs: object) -> None:
        if not (facts.is_of_gallery(self.env.docname) and self.env.docname.endswith("/index")):
            return
        for first in list(self.document.findall(nodes.raw)):
            if first.parent is not None and _FIRST in first.astext():
                parent = first.parent
                for node in list(first.findall(siblings=True, descend=False, include_self=False)):
                    if isinstance(node, (nodes.raw, nodes.comment, addnodes.only)):
                        parent.remove(node)
                first.replace_self(chapter_map())


def duration(minutes: int) -> str:
    """
    >>> duration(45), duration(90), duration(120)
    ('45 min', '1 h 30 min', '2 h')
    """
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{rest} min"
    if not rest:
        return f"{hours} h"
    return f"{hours} h {rest} min"


def pages_of(env: BuildEnvironment, chapter: str) -> list[str]:
    """The pages of a chapter, in the order of reading, by the name of its first page."""
    known = facts.of(env)
    return [page for page in env.toctree_includes.get(chapter, []) if page in known]


def places(env: BuildEnvironment) -> dict[str, int]:
    """The place of each page of the gallery in the order of reading."""
    return {page: place for place, page in enumerate(page for page in in_order(env) if page in facts.of(env))}


def shown(env: BuildEnvironment, chapter: str) -> list[tuple[Any, ...]]:
    """All that the cards of a chapter say. Sphinx writes the first page of a chapter again with any page of it."""
    known, order = facts.of(env), places(env)
    found = []
    for page in pages_of(env, chapter):
        first = [(other, env.titles[other].astext()) for other in before(env, page, known[page], order)]
        found.append((page, env.titles[page].astext(), known[page], first))
    return found


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the cards in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(chapter_map)):
        cards = shown(app.env, page)
        items = []
        for name, _title, of, first in cards:
            small: list[nodes.Node] = [nodes.Text(duration(of.minutes))]
            for number, (other, title) in enumerate(first):
                small += [nodes.Text(", " if number else " · " + "Before:" + " ")]
                small.append(link_to(app, page, other, short(title)))
            items.append(card(link_to(app, page, name), of, small))
        total = sum(of.minutes for _name, _title, of, _first in cards)
        sentence = (
            f"{len(cards)} pages, {duration(total)} at {WORDS} words and {LINES} lines of code a minute. "
            "Each card says what to read before it."
        )
        # the words are other pages'; the search would find this page for all of them
        place.replace_self(
            nodes.container(
                "",
                nodes.paragraph("", sentence, classes=["map-head"]),
                ticks(),
                nodes.enumerated_list("", *items, classes=["cards"], enumtype="arabic", prefix="", suffix="."),
                classes=["map", "no-search"],
            )
        )


def setup(app: Sphinx) -> None:
    app.add_node(chapter_map)
    app.add_transform(MapForCards)
    app.connect("doctree-resolved", fill)
