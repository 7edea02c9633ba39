"""``.. learning-path::`` lists pages to read one after the other: what each answers, its minutes, and how long all take.

Each line names a page of the gallery, as ``memory/checkpointing``. What is said of a page is what its card says.
"""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from atlas.gathering_page import GatheringPage
from atlas.toolbox import link_to

from . import facts
from .card import item
from .chapter_map import duration
from .ticks import ticks

logger = logging.getLogger(__name__)

PAGE = GatheringPage("atlas_learning_paths_page")


class learning_path(nodes.General, nodes.Element):
    """The place of a list. Attribute ``pages``: as ``chapter/page``, in order."""


class LearningPath(SphinxDirective):
    """``.. learning-path::`` with one line for each page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        place = learning_path(pages=[line.strip() for line in self.content if line.strip()])
        self.set_source_info(place)
        PAGE.note(self.env)
        return [place]


def places(env: BuildEnvironment) -> Iterator[learning_path]:
    """The lists, on whichever page they stand."""
    page = PAGE.of(env)
    yield from env.get_doctree(page).findall(learning_path) if page else ()


def shown(env: BuildEnvironment, names: list[str]) -> list[tuple[str, str, facts.Facts]]:
    """Of each page: its name, its title, and what is said of it."""
    known = facts.of(env)
    pages = (f"gallery/{name}" for name in names)
    return [(page, env.titles[page].astext(), known[page]) for page in pages if page in known]


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Each page that is named exists, and stands in a list once. Connected to ``env-check-consistency``."""
    for place in places(env):
        names = place["pages"]
        for number, name in enumerate(names):
            if f"gallery/{name}" not in env.found_docs:
                logger.error("learning-path: there is no page %s", name, location=place)
            if name in names[:number]:
                logger.error("learning-path: it has %s twice", name, location=place)


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the lists in. Connected to ``doctree-resolved``."""
    for number, place in enumerate(list(document.findall(learning_path))):
        pages = shown(app.env, place["pages"])
        items = [item(link_to(app, page, name), of, [nodes.Text(duration(of.minutes))]) for name, _title, of in pages]
        head = f"{len(pages)} pages, {duration(sum(of.minutes for _name, _title, of in pages))}."
        listed = nodes.enumerated_list("", *items, classes=["path"], enumtype="arabic", prefix="", suffix=".")
        parts = [nodes.paragraph("", head, classes=["map-head"]), *([] if number else [ticks()]), listed]
        place.replace_self(nodes.container("", *parts, classes=["map", "no-search"]))


def setup(app: Sphinx) -> None:
    app.add_node(learning_path)
    app.add_directive("learning-path", LearningPath)
    app.connect("env-check-consistency", check)
    PAGE.connect(app, lambda app, env: [shown(env, place["pages"]) for place in places(env)])
    app.connect("doctree-resolved", fill)
