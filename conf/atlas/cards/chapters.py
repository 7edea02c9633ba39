"""``.. chapter-cards::`` shows all chapters as cards: what each is about, how many pages it has, and how long they take.

Each line names a chapter by the page whose picture stands for it, as ``memory/checkpointing``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from atlas.gathering_page import GatheringPage
from atlas.pages import read_pages
from atlas.toolbox import link_to

from . import facts
from .card import card
from .chapter_map import duration, pages_of
from .ticks import ticks

logger = logging.getLogger(__name__)

PAGE = GatheringPage("atlas_chapter_cards_page")
LONGEST = 5 * 60  # minutes: a chapter that takes longer is not read from its first page to its last


class chapter_cards(nodes.General, nodes.Element):
    """The place of the cards. Attribute ``pages``: those whose pictures are shown, as ``chapter/page``."""


class ChapterCards(SphinxDirective):
    """``.. chapter-cards::`` with one line for each chapter."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        place = chapter_cards(pages=[line.strip() for line in self.content if line.strip()])
        self.set_source_info(place)
        missing = [
            chapter
            for chapter in read_pages().chapters
            if chapter not in {page.partition("/")[0] for page in place["pages"]}
        ]
        if missing:
            raise self.error(f"name a page of each chapter, of {', '.join(missing)} too")
        PAGE.note(self.env)
        return [place]


def shown(env: BuildEnvironment, names: list[str]) -> Iterator[tuple[str, str, facts.Facts, list[int]]]:
    """Of each chapter: its first page, that one's title, what is said and shown of it, and the minutes of its pages."""
    known = facts.of(env)
    for name in names:
        chapter, pictured = f"gallery/{name.partition('/')[0]}/index", known.get(f"gallery/{name}")
        if chapter in known and pictured:
            of = replace(known[chapter], picture=pictured.picture, look=pictured.look, varies=pictured.varies)
            minutes = [known[page].minutes for page in pages_of(env, chapter)]
            yield chapter, env.titles[chapter].astext(), of, minutes


def named(env: BuildEnvironment) -> list[str]:
    """The pages that the directive names, on whichever page it stands."""
    page = PAGE.of(env)
    places = env.get_doctree(page).findall(chapter_cards) if page else ()
    return [name for place in places for name in place["pages"]]


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Each page that is named exists. Connected to ``env-check-consistency``."""
    for name in named(env):
        if f"gallery/{name}" not in env.found_docs:
            logger.error("%s: chapter-cards: there is no page %s", env.doc2path(PAGE.of(env)), name)


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the cards in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(chapter_cards)):
        items = [
            card(link_to(app, page, chapter), of, [nodes.Text(_size(minutes))])
            for chapter, _title, of, minutes in shown(app.env, place["pages"])
        ]
        listed = nodes.enumerated_list("", *items, classes=["cards"], enumtype="arabic", prefix="", suffix=".")
        place.replace_self(nodes.container("", ticks(), listed, classes=["map", "no-search"]))


def _size(minutes: list[int]) -> str:
    """
    >>> _size([10, 15]), _size([5] * 100)
    ('2 pages · 25 min', '100 pages · 5 min each')
    """
    if sum(minutes) > LONGEST:
        return f"{len(minutes)} pages · {duration(round(median(minutes)))} each"
    return f"{len(minutes)} pages · {duration(sum(minutes))}"


def setup(app: Sphinx) -> None:
    app.add_node(chapter_cards)
    app.add_directive("chapter-cards", ChapterCards)
    app.connect("env-check-consistency", check)
    PAGE.connect(app, lambda app, env: list(shown(env, named(env))))
    app.connect("doctree-resolved", fill)
