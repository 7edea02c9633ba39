"""The tags of a page of the gallery, in a line at its foot, and the list of all pages with theirs.

``.. tagged-pages::`` lists all pages of the gallery, chapter by chapter, each with its tags. ``conf/static/filters.js`` brings
its filter by tag to life, and the address keeps what was chosen: the tags of a page link to it. sphinx-gallery has a
filter too. Its tags are no buttons, so a keyboard does not reach them, and it shows one chapter at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError
from sphinx.transforms import SphinxTransform

from .page_store import ListingPages, PageStore, add_place, connect_for_pages, enable_stores
from .pages import Pages, is_example, list_pages_in_order, read_pages
from .toolbox import link_to

GALLERY = "gallery/"

# -- The list of all pages --------------------------------------------------------------------------


class tagged_list(nodes.General, nodes.Element):
    """The place of the list."""


class PagesWithList(ListingPages):
    """Where the list stands; gathered: what it says, the tags and of each page its name, its title and its tags."""

    name = "tagged-pages"
    place = tagged_list

    def gather(self, app: Sphinx, env: BuildEnvironment) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
        said = read_tags(app)
        pages = [page for page in list_pages_in_order(env) if is_example(page)]
        return said.tags, [(page, env.titles[page].astext(), find_tags(said, page)) for page in pages]


class LeaveOutChapters(SphinxTransform):
    """Take away what sphinx-gallery puts below the list: the chapters again, each with its introduction and all its cards."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for place in list(self.document.findall(tagged_list)):
            for node in list(place.findall(siblings=True, descend=False, include_self=False)):
                place.parent.remove(node)
                place.parent += list(node.findall(addnodes.toctree))


def read_tags(app: Sphinx) -> Pages:
    """What ``examples/pages.toml`` says; nothing if it cannot be read, which ``atlas.checks`` reports."""
    try:
        return read_pages(Path(app.srcdir, app.config.sphinx_gallery_conf["examples_dirs"], "pages.toml").resolve())
    except (OSError, ConfigError):
        return Pages([], {}, {}, [])


def find_tags(said: Pages, page: str) -> list[str]:
    return said.tags_of.get(page.removeprefix(GALLERY), [])


def fill_list(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(tagged_list)):
        tags, pages = PagesWithList.gathered(app.env)
        # the titles are other pages'; the search would find this page for all of them
        filled = nodes.container("", _make_filter(tags, len(pages)), classes=["tagged", "no-search"])
        for chapter, of_chapter in groupby(pages, key=lambda entry: entry[0].rpartition("/")[0]):
            listed = nodes.bullet_list()
            for name, title, own in of_chapter:
                link, words = link_to(app, page, name, title), nodes.paragraph("", " · ".join(own))
                listed += nodes.list_item("", nodes.paragraph("", "", link), words)
            heading = nodes.paragraph("", "", nodes.strong("", "", link_to(app, page, f"{chapter}/index")))
            filled += nodes.container("", heading, listed, classes=["chapter"])
        place.replace_self(filled)


def _make_filter(words: Sequence[str], count: int) -> nodes.raw:
    """The form, which does nothing yet, and says what its entries are."""
    boxes = "".join(
        f'<label><input type="checkbox" name="tag" value="{escape(word)}">{escape(word)}</label>' for word in words
    )
    sentence = "{shown} of {all} pages"
    form = (
        f'<form class="filter" data-items=".tagged li" data-groups=".tagged .chapter" data-count="{sentence}">'
        f"<fieldset><legend>Show the pages about</legend>{boxes}</fieldset>"
        f'<output aria-live="polite">{sentence.format(shown=count, all=count)}</output>'
        '<button type="reset" hidden>Show all</button></form>'
    )
    return nodes.raw("", form, format="html")


# -- The line at the foot of a page ----------------------------------------------------------------


class TagsOfPages(PageStore[bool]):
    """Which pages are examples; gathered: the tags of each, and the page with the list, if there is one."""

    name = "tags"
    after = (PagesWithList,)

    def collect(self, app: Sphinx, document: nodes.document) -> bool | None:
        return is_example(app.env.docname) or None

    def gather(self, app: Sphinx, env: BuildEnvironment) -> dict[str, tuple[list[str], str]]:
        said, home = read_tags(app), min(PagesWithList.facts(env), default="")
        return {page: (find_tags(said, page), home) for page in self.facts(env)}


def list_tags_line(app: Sphinx, page: str) -> list[nodes.Node]:
    """The line of a page's tags, for its foot, as far as it has any."""
    tags, home = TagsOfPages.gathered(app.env).get(page, ([], ""))
    if not tags or not home:
        return []
    # the words are other pages'; the search would find this page for them
    line = nodes.paragraph("", "", nodes.Text("Tags:"), classes=["leads-on", "no-search"])
    for number, tag in enumerate(tags):
        line += [nodes.Text(", " if number else " "), link_to(app, page, home, tag, after=f"?tag={quote(tag)}")]
    return [line]


def setup(app: Sphinx) -> None:
    add_place(app, "tagged-pages", tagged_list)
    app.add_transform(LeaveOutChapters)
    enable_stores(app, PagesWithList, TagsOfPages)
    connect_for_pages(app, "doctree-resolved", fill_list)
