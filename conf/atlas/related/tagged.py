"""``.. tagged-pages::`` lists all pages of the gallery, chapter by chapter, each with its tags.

``conf/static/tags.js`` brings its filter by tag to life, and the address keeps what was chosen: the tags of a page link to it.
The filter stands in the page, so that nothing moves when the script comes. Without scripts it is hidden, and the list is whole.
sphinx-gallery has a filter too. Its tags are no buttons, so a keyboard does not reach them, and it shows one chapter at a time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from atlas.cards.ticks import ticks
from atlas.gathering_page import GatheringPage
from atlas.page_parts.navigation_order import in_order
from atlas.pages import Pages, read_pages
from atlas.toolbox import link_to

PAGE = GatheringPage("atlas_tagged")

SCRIPT = "tags.js"


class tagged_list(nodes.General, nodes.Element):
    """The place of the list."""


class TaggedPages(SphinxDirective):
    """``.. tagged-pages::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        PAGE.note(self.env)
        return [tagged_list()]


class NoChapters(SphinxTransform):
    """Take away what sphinx-gallery puts below the list: the chapters again, each with its introduction and all its cards."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for place in list(self.document.findall(tagged_list)):
            for node in list(place.findall(siblings=True, descend=False, include_self=False)):
                place.parent.remove(node)
                place.parent += list(node.findall(addnodes.toctree))


def file(app: Sphinx) -> Path:
    return Path(app.srcdir, app.config.sphinx_gallery_conf["examples_dirs"], "pages.toml").resolve()


def tags(app: Sphinx) -> Pages:
    """What the file says; nothing if it cannot be read, which ``atlas.checks`` reports."""
    try:
        return read_pages(file(app))
    except (OSError, tomllib.TOMLDecodeError):
        return Pages([], {}, {})


def pages(env: BuildEnvironment) -> list[str]:
    """The examples' pages, in the order in which the navigation has them."""
    found = [page for page in in_order(env) if page.startswith("gallery/") and not page.endswith("/index")]
    return [page for page in found if page.count("/") == 2]


def gathered(app: Sphinx, env: BuildEnvironment) -> Any:
    """What the list says."""
    said = tags(app)
    return (
        said.tags,
        [(page, env.titles[page].astext(), said.tags_of.get(page.removeprefix("gallery/"))) for page in pages(env)],
    )


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(tagged_list)):
        said, names = tags(app), pages(app.env)
        # the titles are other pages'; the search would find this page for all of them
        filled = nodes.container("", _filter(said.tags, len(names)), classes=["tagged", "no-search"])
        for chapter, of_chapter in groupby(names, key=lambda name: name.rpartition("/")[0]):
            listed = nodes.bullet_list("", *(_item(app, page, name, said) for name in of_chapter))
            heading = nodes.paragraph("", "", nodes.strong("", "", link_to(app, page, f"{chapter}/index")))
            filled += nodes.container("", heading, listed, classes=["chapter"])
        place.replace_self([ticks(), filled])


def _filter(words: Sequence[str], count: int) -> nodes.raw:
    """The form, which does nothing yet. Its ``data-count`` is the sentence of the script."""
    boxes = "".join(
        f'<label><input type="checkbox" name="tag" value="{escape(word)}">{escape(word)}</label>' for word in words
    )
    sentence = "{shown} of {all} pages"
    form = (
        f'<form class="filter" data-count="{escape(sentence)}">'
        f"<fieldset><legend>{escape('Show the pages about')}</legend>{boxes}</fieldset>"
        f'<output aria-live="polite">{escape(sentence.format(shown=count, all=count))}</output>'
        f'<button type="reset" hidden>{escape("Show all")}</button></form>'
    )
    return nodes.raw("", form, format="html")


def _item(app: Sphinx, page: str, name: str, said: Pages) -> nodes.list_item:
    of = nodes.paragraph("", " · ".join(said.tags_of.get(name.removeprefix("gallery/"), [])))
    return nodes.list_item("", nodes.paragraph("", "", link_to(app, page, name)), of)


def load(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Load the filter on the page with the list alone. Connected to ``html-page-context``."""
    if name == PAGE.of(app.env):
        app.add_js_file(SCRIPT, defer="defer")


def setup(app: Sphinx) -> None:
    app.add_node(tagged_list)
    app.add_directive("tagged-pages", TaggedPages)
    app.add_transform(NoChapters)
    PAGE.connect(app, gathered)
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", load)
