"""``.. symptoms::`` lists the pages about errors, group by group, each with what people say who have its problem.

The groups are in ``examples/pages.toml``. What people say of a page stands in the page, as main index entries, and goes from
there into the search and into this list. A ``page_filter`` stands above it; without scripts the groups can be unfolded.
"""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from atlas.cards.ticks import ticks
from atlas.directives.fold import details
from atlas.pages import read_pages
from atlas.toolbox import link_to

from . import gather, page_filter

CHAPTER = "gallery/errors"


class symptom_list(nodes.General, nodes.Element):
    """The place of the list."""


class Symptoms(SphinxDirective):
    """``.. symptoms::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        if (
            self.env.docname != "gallery/index"
        ):  # which takes in the chapter's introduction, and shows the list nowhere
            self.env.atlas_symptoms = self.env.docname
        return [symptom_list()]


class NoCards(SphinxTransform):
    """Take away sphinx-gallery's cards below the list: they name the same pages, and on a phone they are forty screens."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for place in self.document.findall(symptom_list):
            for node in list(place.findall(siblings=True, descend=False, include_self=False)):
                if isinstance(node, (nodes.raw, nodes.comment, addnodes.only)):
                    node.parent.remove(node)


def groups(env: BuildEnvironment) -> Iterator[tuple[str, list[tuple[str, gather.Found]]]]:
    """Title and pages of each group, a page with its name and with what the search knows of it."""
    known = gather.pages(env)
    for title, names in read_pages().errors.items():
        pages = [f"gallery/{name}" for name in names]
        yield title, [(page, known[page]) for page in pages if page in known]


def pages_to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The page with the list, if what it lists has changed. Connected to ``env-updated``."""
    if app.builder.format != "html" or not hasattr(env, "atlas_symptoms"):
        return []
    now = [(title, [(page, found.title, *found.symptoms) for page, found in pages]) for title, pages in groups(env)]
    before, env.atlas_symptoms_written = getattr(env, "atlas_symptoms_written", None), now
    return [env.atlas_symptoms] if before != now else []


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(symptom_list)):
        above = nodes.raw("", page_filter.form("symptoms"), format="html")
        filled = nodes.container("", classes=["symptoms"])
        for title, pages in groups(app.env):
            listed = nodes.bullet_list("", *(_item(app, page, name, found) for name, found in pages))
            filled += details("", listed, summary=f"{title} ({len(pages)})")
        place.replace_self([ticks(), above, filled])


def _item(app: Sphinx, page: str, name: str, found: gather.Found) -> nodes.list_item:
    link = link_to(app, page, name, found.title)
    said = nodes.paragraph("", " · ".join(found.symptoms))
    return nodes.list_item("", nodes.paragraph("", "", link), said)


def merge(app: Sphinx, env: BuildEnvironment, names: set[str], other: BuildEnvironment) -> None:
    """Take over what another process read. Connected to ``env-merge-info``."""
    if getattr(other, "atlas_symptoms", None) in names:
        env.atlas_symptoms = other.atlas_symptoms


def setup(app: Sphinx) -> None:
    app.add_node(symptom_list)
    app.add_directive("symptoms", Symptoms)
    app.add_transform(NoCards)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", pages_to_write)
    app.connect("doctree-resolved", fill)
