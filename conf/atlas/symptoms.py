"""``.. symptoms::`` lists the pages about errors, group by group, each with what people say who have its problem.

The groups are in ``examples/pages.toml``. What people say of a page stands in the page, as main index entries, and goes from
there into the search and into this list. A filter stands above it; without scripts the groups can be unfolded.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from .cards import make_ticks_line
from .folds import make_details
from .page_store import ListingPages, connect_for_pages, enable_stores
from .pages import read_pages
from .search import SearchedPages
from .tables import make_filter_form
from .toolbox import link_to

#: Of each group its title, and of each page in it the name, the title and the symptoms.
Groups = list[tuple[str, list[tuple[str, str, list[str]]]]]


class symptom_list(nodes.General, nodes.Element):
    """The place of the list."""


class Symptoms(SphinxDirective):
    """``.. symptoms::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        return [symptom_list()]


class PagesWithSymptoms(ListingPages):
    """Where the list stands."""

    name = "symptoms"
    place = symptom_list
    after = (SearchedPages,)

    def gather(self, app: Sphinx, env: BuildEnvironment) -> Groups:
        """What the list says. A page of another chapter may be in a group, and a small site has not all pages."""
        known = SearchedPages.facts(env)
        groups = []
        for title, names in read_pages().errors.items():
            pages = [page for name in names if (page := f"gallery/{name}") in known]
            groups.append((title, [(page, known[page].title, known[page].symptoms) for page in pages]))
        return groups


class LeaveOutCards(SphinxTransform):
    """Take away sphinx-gallery's cards below the list: they name the same pages, and on a phone they are forty screens."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for place in self.document.findall(symptom_list):
            for node in list(place.findall(siblings=True, descend=False, include_self=False)):
                if isinstance(node, (nodes.raw, nodes.comment, addnodes.only)):
                    node.parent.remove(node)


def fill_symptoms(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list in."""
    for place in list(document.findall(symptom_list)):
        above = make_filter_form("symptoms")
        filled = nodes.container("", classes=["symptoms"])
        for title, pages in PagesWithSymptoms.gathered(app.env):
            listed = nodes.bullet_list("", *(_make_item(app, page, *said) for said in pages))
            filled += make_details(f"{title} ({len(pages)})", listed)
        place.replace_self([make_ticks_line(), above, filled])


def _make_item(app: Sphinx, page: str, name: str, title: str, symptoms: list[str]) -> nodes.list_item:
    link = nodes.paragraph("", "", link_to(app, page, name, title))
    return nodes.list_item("", link, nodes.paragraph("", " · ".join(symptoms)))


def setup(app: Sphinx) -> None:
    app.add_node(symptom_list)
    app.add_directive("symptoms", Symptoms)
    app.add_transform(LeaveOutCards)
    enable_stores(app, PagesWithSymptoms)
    connect_for_pages(app, "doctree-resolved", fill_symptoms)
