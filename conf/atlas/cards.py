"""Cards that lead to pages: chapters on the front page, pages on the first page of their chapter, and lists to read in order.

A card has the title of a page, its answer, its minutes and a small picture of its first figure; in its chapter, also what to
read before it. What it says is found when its page is read (``CardFacts``).

``.. chapter-cards::`` shows all chapters: what each is about, how many pages it has, and how long they take. Each line names a
chapter by the page whose picture stands for it, as ``memory/checkpointing``. ``.. learning-path::`` lists pages to read one
after the other, without pictures; each line names one and says why to read it. On the first page of a chapter, the cards of
its pages stand where sphinx-gallery puts cards of its own, which have a title and a picture of the whole first figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .figures import draw_plot_picture, parse_graph
from .folds import details
from .head import find_first_paragraph, make_plain_text
from .page_store import PageStore, connect_for_pages, enable_stores
from .pages import ERRORS, find_group, list_pages_in_order, read_pages, resolve_link
from .toolbox import first_sentences, link_to

logger = logging.getLogger(__name__)

LONGEST_ANSWER = 150  # characters; a first sentence may be longer
MOST_BEFORE = 2  # pages to read before one
LONGEST_CHAPTER = 5 * 60  # minutes: one that takes longer is not read from its first page to its last
WORDS, LINES = 150, 10  # in a minute, of somebody who reads English as a second language
STEP = 5  # minutes: more would claim to know the reader

#: What is looked at, looked up, or unfolded by those who want it.
_NOT_READ = (nodes.raw, nodes.comment, nodes.legend, addnodes.index, details)
_NO_PROSE = {"sphx-glr-footer", "sphx-glr-download-link-note", "claims", "varies-note", "no-search", "leads-on"}
_OUTPUT = {"none", "text"}
_GALLERY_CARDS = "sg-tag-list"  # sphinx-gallery's filter by tag, above its cards
_CODE = re.compile(r"`([^`]*)`")

# -- What a card says of a page -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facts:
    """
    :ivar answer: the first sentences, with code between backticks.
    :ivar minutes: to read it.
    :ivar named: what its *See also* names, in order: labels and pages, as ``reftype`` and ``reftarget``.
    :ivar picture: a small SVG of its first figure; empty without one.
    :ivar look: the class that colors the picture.
    :ivar varies: whether the figure is one of those that differ from build to build.
    """

    answer: str
    minutes: int
    named: tuple[tuple[str, str], ...]
    picture: str
    look: str
    varies: bool


class CardFacts(PageStore[Facts]):
    """What a card says of each example and of the first page of each chapter."""

    name = "cards"

    def collect(self, app: Sphinx, document: nodes.document) -> Facts | None:
        page = app.env.docname
        if not page.startswith("gallery/") or page.count("/") != 2:
            return None
        picture, look = _draw_picture(app.env, page)
        first = f'id="{_name_image(page)}_001"'
        boxes = [box for box in document.findall(nodes.container) if "varies" in box["classes"]]
        varies = any(first in figure.astext() for box in boxes for figure in box.findall(nodes.raw))
        named = tuple(_list_see_also(document))
        return Facts(_find_answer(document), count_minutes(document), named, picture, look, varies)

    def gather(self, app: Sphinx, env: BuildEnvironment) -> dict[str, tuple[str, str, int, int]]:
        """Of each page its chapter and the chapter's title, its place there, and how many pages that has."""
        chapters = {page: list_pages_of_chapter(env, page) for page in self.facts(env) if page.endswith("/index")}
        return {
            page: (chapter, env.titles[chapter].astext(), place, len(pages))
            for chapter, pages in chapters.items()
            for place, page in enumerate(pages, 1)
        }


def _find_answer(document: nodes.document) -> str:
    paragraph = find_first_paragraph(document)
    if paragraph is None:
        return ""
    said = paragraph.deepcopy()
    for literal in list(said.findall(nodes.literal)):
        literal.replace_self(nodes.Text(f"`{literal.astext()}`"))
    found = first_sentences(make_plain_text(said), LONGEST_ANSWER)
    return f"{found[:-1]}." if found.endswith(":") else found  # what follows the colon is not on the card


def _list_see_also(document: nodes.document) -> Iterator[tuple[str, str]]:
    """The first page that each item of the section *See also* names."""
    section = next((one for one in document.findall(nodes.section) if one[0].astext() == "See also"), None)
    for item in section.findall(nodes.list_item) if section else ():
        if link := next(iter(item.findall(addnodes.pending_xref)), None):
            yield link["reftype"], link["reftarget"]


def _name_image(page: str) -> str:
    return f"sphx_glr_{page.rpartition('/')[2]}"


def _draw_picture(env: BuildEnvironment, page: str) -> tuple[str, str]:
    """The picture of the page's first figure, and its look."""
    first = Path(env.srcdir, page).parent / "images" / f"{_name_image(page)}_001"
    graph, plot = first.with_suffix(".graph.json"), first.with_suffix(".svg")
    if graph.is_file():
        from drawgrad.drawing import draw_picture

        read, _made_by, show_saved = parse_graph(graph.read_text(encoding="utf-8"))
        return draw_picture(read, show_saved=show_saved), "graph"
    return (draw_plot_picture(plot.read_text(encoding="utf-8")), "plot") if plot.is_file() else ("", "")


def count_minutes(document: nodes.document) -> int:
    """The minutes to read a page, from its words of prose and its lines of code, in steps of five; never none."""
    words, lines = 0, 0
    for kind, text in _list_texts(document):
        if kind == "code":
            lines += sum(bool(line.strip()) for line in text.splitlines())
        else:
            words += len(text.split())
    return max(STEP, STEP * round((words / WORDS + lines / LINES) / STEP))


def _list_texts(node: nodes.Node) -> Iterator[tuple[str, str]]:
    """The pieces of text that a reader goes through, each with what it is."""
    if isinstance(node, _NOT_READ) or _NO_PROSE & set(getattr(node, "attributes", {}).get("classes", [])):
        return
    if isinstance(node, nodes.literal_block):
        if str(node.get("language", "")).lower() not in _OUTPUT:
            yield "code", node.astext()
    elif isinstance(node, nodes.TextElement):
        yield "prose", node.astext()
    else:
        for child in node.children:
            yield from _list_texts(child)


# -- Where cards stand --------------------------------------------------------------------------------


class card_list(nodes.General, nodes.Element):
    """The place of cards. Attributes ``kind``: the directive, or ``map`` of a chapter; ``pages``: what it names, and why."""


class ListOfCards(SphinxDirective):
    """A directive with one line for each page, as ``chapter/page`` or ``chapter/page: why to read it``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        lines = [line.strip().partition(": ") for line in self.content if line.strip()]
        place = card_list(kind=self.name, pages=[(page, why) for page, _, why in lines])
        self.set_source_info(place)
        named = {page.partition("/")[0] for page, _why in place["pages"]}
        missing = [chapter for chapter in read_pages().chapters if chapter not in named]
        if self.name == "chapter-cards" and missing:
            raise self.error(f"name a page of each chapter, of {', '.join(missing)} too")
        return [place]


class PutMapForCards(SphinxTransform):
    """Put the place of a chapter's map where sphinx-gallery's cards are. The errors have a list of their own."""

    default_priority = 410

    def apply(self, **kwargs: object) -> None:
        page = self.env.docname
        if not (page.startswith("gallery/") and page.count("/") == 2 and page.endswith("/index")):
            return
        for first in list(self.document.findall(nodes.raw)):
            if first.parent is not None and _GALLERY_CARDS in first.astext():
                for node in list(first.findall(siblings=True, descend=False, include_self=False)):
                    if isinstance(node, (nodes.raw, nodes.comment, addnodes.only)):
                        first.parent.remove(node)
                first.replace_self([] if page.startswith(ERRORS) else card_list(kind="map", pages=[]))


# -- What the cards of a list say ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Card:
    """
    :ivar small: the line of small print.
    :ivar before: names and titles of pages to read before it.
    """

    page: str
    title: str
    facts: Facts
    small: str
    before: tuple[tuple[str, str], ...] = ()


class CardLists(PageStore[list[tuple[str, list[tuple[str, str]], int]]]):
    """The lists of each page, as kind, pages with why to read each, and line; gathered: their cards."""

    name = "card-lists"
    after = (CardFacts,)

    def collect(self, app: Sphinx, document: nodes.document) -> list[tuple[str, list[tuple[str, str]], int]] | None:
        return [(place["kind"], place["pages"], place.line or 0) for place in document.findall(card_list)] or None

    def gather(self, app: Sphinx, env: BuildEnvironment) -> dict[str, list[list[Card]]]:
        known = CardFacts.facts(env)
        order = {page: place for place, page in enumerate(name for name in list_pages_in_order(env) if name in known)}
        make = {"chapter-cards": make_chapter_cards, "learning-path": make_path}
        return {
            page: [
                list(make[kind](env, pages) if kind in make else make_map(env, page, order))
                for kind, pages, _line in lists
            ]
            for page, lists in self.facts(env).items()
        }


def make_map(env: BuildEnvironment, chapter: str, order: dict[str, int]) -> Iterator[Card]:
    """The cards of a chapter's pages, in the order of reading.

    :param order: the place of each page of the gallery.
    """
    for page in list_pages_of_chapter(env, chapter):
        facts = CardFacts.facts(env)[page]
        before = tuple((other, shorten_title(env.titles[other].astext())) for other in find_before(env, page, order))
        yield Card(page, env.titles[page].astext(), facts, format_duration(facts.minutes), before)


def make_path(env: BuildEnvironment, pages: list[tuple[str, str]]) -> Iterator[Card]:
    known = CardFacts.facts(env)
    for page, why in ((f"gallery/{name}", why) for name, why in pages):
        if page in known:
            facts = replace(known[page], answer=why or known[page].answer)
            yield Card(page, env.titles[page].astext(), facts, format_duration(facts.minutes))


def make_chapter_cards(env: BuildEnvironment, pages: list[tuple[str, str]]) -> Iterator[Card]:
    """Of each chapter its first page, with the picture of the page that is named."""
    known = CardFacts.facts(env)
    for name, _why in pages:
        chapter, pictured = f"gallery/{name.partition('/')[0]}/index", known.get(f"gallery/{name}")
        if chapter in known and pictured:
            facts = replace(known[chapter], picture=pictured.picture, look=pictured.look, varies=pictured.varies)
            minutes = [known[page].minutes for page in list_pages_of_chapter(env, chapter)]
            yield Card(chapter, env.titles[chapter].astext(), facts, format_size(minutes))


def list_pages_of_chapter(env: BuildEnvironment, chapter: str) -> list[str]:
    """The pages of a chapter, in the order of reading, by the name of its first page."""
    return [page for page in env.toctree_includes.get(chapter, []) if page in CardFacts.facts(env)]


def find_before(env: BuildEnvironment, page: str, order: dict[str, int]) -> list[str]:
    """What to read before a page: at most two earlier pages that its own *See also* names.

    The page just before it in the order of reading is named last, and only within a chapter: it comes before, and need not be
    needed.
    """
    found = dict.fromkeys(resolve_link(env, page, *link) for link in CardFacts.facts(env)[page].named)
    earlier = [other for other in found if order.get(other, len(order)) < order[page]]
    last = [other for other in earlier if order[other] == order[page] - 1]
    chosen = [other for other in earlier if other not in last]
    return (chosen + [other for other in last if Path(other).parent == Path(page).parent])[:MOST_BEFORE]


def shorten_title(title: str) -> str:
    """The part of a title before its colon.

    >>> shorten_title("Leaf tensors: is_leaf, retain_grad() and .grad"), shorten_title("std::move")
    ('Leaf tensors', 'std::move')
    """
    return title.partition(": ")[0]


def format_duration(minutes: int) -> str:
    """
    >>> format_duration(45), format_duration(90), format_duration(120)
    ('45 min', '1 h 30 min', '2 h')
    """
    hours, rest = divmod(minutes, 60)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{rest} min"] if rest or not hours else [])])


def format_size(minutes: list[int]) -> str:
    """
    >>> format_size([10, 15]), format_size([5] * 100)
    ('2 pages · 25 min', '100 pages · 5 min each')
    """
    if sum(minutes) > LONGEST_CHAPTER:
        return f"{len(minutes)} pages · {format_duration(round(median(minutes)))} each"
    return f"{len(minutes)} pages · {format_duration(sum(minutes))}"


def check_lists(app: Sphinx, env: BuildEnvironment) -> None:
    """Each page that is named exists, and stands in a list once. Connected to ``env-check-consistency``."""
    for page, lists in CardLists.facts(env).items():
        for kind, pages, line in lists:
            names = [name for name, _why in pages]
            for number, name in enumerate(names):
                if f"gallery/{name}" not in env.found_docs:
                    logger.error("%s: there is no page %s", kind, name, location=(page, line))
                if name in names[:number]:
                    logger.error("%s: it has %s twice", kind, name, location=(page, line))


# -- The cards on a page ------------------------------------------------------------------------------


def fill_lists(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the cards in. Connected to ``doctree-resolved``."""
    places = list(document.findall(card_list))
    for place, cards in zip(places, CardLists.gathered(app.env).get(page, []), strict=True):
        items = [make_item(app, page, card, is_read_in_order=place["kind"] == "learning-path") for card in cards]
        total = format_duration(sum(card.facts.minutes for card in cards))
        head = f"{len(cards)} pages, {total}." if place["kind"] in ("map", "learning-path") else ""
        look = "path" if place["kind"] == "learning-path" else "cards"
        parts = [
            *([nodes.paragraph("", head, classes=["map-head"])] if head else []),
            nodes.enumerated_list("", *items, classes=[look], enumtype="arabic", prefix="", suffix="."),
        ]
        # the words are other pages'; the search would find this page for all of them
        place.replace_self(nodes.container("", *parts, classes=["map", "no-search"]))


def describe_place(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Give the template ``place``, for the line above the title. Connected to ``html-page-context``."""
    if found := CardFacts.gathered(app.env).get(page):
        chapter, title, number, count = found
        said = f"{number} of {count} · {format_duration(CardFacts.facts(app.env)[page].minutes)}"
        is_error = page.startswith(ERRORS)
        context["place"] = {
            "chapter": chapter,
            "title": title,
            "said": find_group(page) if is_error else said,
            "is_error": is_error,
        }


def make_item(app: Sphinx, page: str, card: Card, *, is_read_in_order: bool) -> nodes.list_item:
    """A card: a picture, a link that covers all of it, a sentence, and a line of small print; without its picture in a path."""
    made = nodes.list_item("", classes=[] if is_read_in_order else ["card"])
    if not is_read_in_order:
        # what varies is left out where two builds are compared
        kinds = ["picture", card.facts.look, *(["varies"] if card.facts.varies else [])]
        picture = f'<div class="{" ".join(filter(None, kinds))}">{card.facts.picture}</div>'
        made += nodes.raw("", picture, format="html")
    made += nodes.paragraph("", "", link_to(app, page, card.page, card.title), classes=["card-title"])
    made += nodes.paragraph("", "", *_mark_code(card.facts.answer), classes=["card-answer"])
    small: list[nodes.Node] = [nodes.Text(card.small)]
    for number, (other, title) in enumerate(card.before):
        small += [nodes.Text(", " if number else " · Before: "), link_to(app, page, other, title)]
    made += nodes.paragraph("", "", *small, classes=["card-small"])
    return made


def _mark_code(said: str) -> Iterable[nodes.Node]:
    """Text with code between backticks, as nodes."""
    for number, part in enumerate(_CODE.split(said)):
        if part:
            yield nodes.literal("", part) if number % 2 else nodes.Text(part)


def setup(app: Sphinx) -> None:
    app.add_node(card_list)
    for name in ("chapter-cards", "learning-path"):
        app.add_directive(name, ListOfCards)
    app.add_transform(PutMapForCards)
    enable_stores(app, CardFacts, CardLists)
    app.connect("env-check-consistency", check_lists)
    connect_for_pages(app, "doctree-resolved", fill_lists)
    connect_for_pages(app, "html-page-context", describe_place)
