"""Which other pages a page of the gallery leads to, beside those that its author names: pages like it, and pages with its tags.

Two lines at the foot of a page: pages like it that it does not link to yet, and its tags. Pages are alike if they use the same
names of PyTorch, and few others use those. sphinx-gallery 0.22.1's recommender counts all words of a script, also those of
checks that are hidden, knows nothing of what a page links to already, and puts pictures on the page.

``.. tagged-pages::`` lists all pages of the gallery, chapter by chapter, each with its tags. ``conf/static/filters.js`` brings
its filter by tag to life, and the address keeps what was chosen: the tags of a page link to it. sphinx-gallery has a
filter too. Its tags are no buttons, so a keyboard does not reach them, and it shows one chapter at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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

from .names import Used, UsedNames
from .page_store import ListingPages, PageStore, add_place, connect_for_pages, enable_stores
from .pages import Pages, is_example, list_pages_in_order, read_pages, resolve_link
from .toolbox import link_to

GALLERY = "gallery/"
MOST = 3  # pages in the line
# Chosen by looking at what they find on this site: one name in common is a coincidence, however rare it is.
LEAST = 0.22
MOST_OF_ONE_NAME = 0.15
_SPOKEN = 2  # a name that the text speaks of, too, says more of what a page is about

# -- Pages that are alike ---------------------------------------------------------------------------


def weigh_names(facts: Mapping[str, Used]) -> dict[str, dict[str, float]]:
    """What each page is about, as a direction: its names, each with the more weight, the fewer pages use it. Length 1."""
    counts = Counter(name for fact in facts.values() for name in fact.used)
    found = {}
    for page, fact in facts.items():
        about = {
            name: math.log(len(facts) / counts[name]) * (_SPOKEN if name in fact.spoken else 1)
            for name in fact.used
            if 1 < counts[name] <= len(facts) / 2
        }
        length = math.sqrt(sum(weight**2 for weight in about.values()))
        found[page] = {name: weight / length for name, weight in about.items()} if length else {}
    return found


def find_nearest(page: str, about: Mapping[str, Mapping[str, float]], among: Collection[str]) -> list[str]:
    """The pages ``among`` those given that are most like a page, the most like it first; of equals, the first by name.

    >>> about = weigh_names({"a": Used(["cos", "sin"], []), "b": Used(["cos", "sin"], []), "c": Used(["exp"], []),
    ...                      "d": Used(["exp"], []), "e": Used(["tan"], [])})
    >>> find_nearest("a", about, ["c", "b", "d", "e"]), find_nearest("c", about, ["a", "b"])
    (['b'], [])
    """
    own = about.get(page, {})
    # rounded: the last digits depend on the order of a sum, and must not decide
    likeness = {
        other: round(
            sum(min(weight * about[other].get(name, 0), MOST_OF_ONE_NAME) for name, weight in own.items()), 6
        )
        for other in among
        if other in about and other != page
    }
    order = sorted(likeness, key=lambda other: (-likeness[other], other))
    return [other for other in order if likeness[other] >= LEAST][:MOST]


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


# -- Two lines at the foot of a page ----------------------------------------------------------------

Lines = tuple[list[tuple[str, str]], list[str], str]
"""Of a page: the names and titles of those like it, its tags, and the page with the list, if there is one."""


class RelatedPages(PageStore[list[tuple[str, str]]]):
    """What each example links to, as ``reftype`` and ``reftarget``; gathered: the lines of each."""

    name = "related"
    after = (UsedNames, PagesWithList)

    def collect(self, app: Sphinx, document: nodes.document) -> list[tuple[str, str]] | None:
        links = document.findall(addnodes.pending_xref)
        return (
            sorted({(link["reftype"], link["reftarget"]) for link in links}) if is_example(app.env.docname) else None
        )

    def gather(self, app: Sphinx, env: BuildEnvironment) -> dict[str, Lines]:
        facts, about, said = self.facts(env), weigh_names(UsedNames.facts(env)), read_tags(app)
        home = min(PagesWithList.facts(env), default="")
        lines = {}
        for page in facts:
            linked = {resolve_link(env, page, *link) for link in facts[page]}
            tags = set(find_tags(said, page))
            others = {other: set(find_tags(said, other)) for other in facts if other not in linked}
            # the same names serve another purpose where no tag is shared
            fitting = [other for other, own in others.items() if not tags or not own or tags & own]
            like = [(other, env.titles[other].astext()) for other in find_nearest(page, about, fitting)]
            lines[page] = like, find_tags(said, page), home
        return lines


def related_lines(app: Sphinx, page: str) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """The line of related pages and that of tags, each as far as the page has it, for its foot."""
    related, tags, home = RelatedPages.gathered(app.env).get(page, ([], [], ""))
    others = [link_to(app, page, *other) for other in related]
    links = [link_to(app, page, home, tag, after=f"?tag={quote(tag)}") for tag in tags] if home else []
    return (
        [_make_line("Related pages:", others, " · ")] if others else [],
        [_make_line("Tags:", links, ", ")] if links else [],
    )


def _make_line(label: str, links: list[nodes.reference], between: str) -> nodes.paragraph:
    # the words are other pages'; the search would find this page for them
    line = nodes.paragraph("", "", nodes.Text(label), classes=["leads-on", "no-search"])
    for number, link in enumerate(links):
        line += [nodes.Text(between if number else " "), link]
    return line


def setup(app: Sphinx) -> None:
    add_place(app, "tagged-pages", tagged_list)
    app.add_transform(LeaveOutChapters)
    enable_stores(app, PagesWithList, RelatedPages)
    connect_for_pages(app, "doctree-resolved", fill_list)
