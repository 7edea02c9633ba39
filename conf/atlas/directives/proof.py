"""``.. proof::`` says in numbers what the site rests on, each a link to what was counted. All are counted by the build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from atlas.build_facts import count_checks, get_torch_version
from atlas.gathering_page import GatheringPage
from atlas.operators import report
from atlas.operators.probing import DATA
from atlas.toolbox import link_to

PAGE = GatheringPage("atlas_proof")


class proof(nodes.General, nodes.Element):
    """The place of the numbers."""


class Proof(SphinxDirective):
    """``.. proof::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        PAGE.note(self.env)
        return [proof()]


def counted(env: BuildEnvironment) -> Iterator[tuple[int, str, str]]:
    """Each number, what was counted, and the page that it leads to; of what this site has."""
    release = ".".join(get_torch_version().split(".")[:2])
    pages = [page for page in env.found_docs if page.startswith("gallery/") and not page.endswith("/index")]
    errors = [page for page in pages if page.startswith("gallery/errors/")]
    asserts = sum(count_checks(env, page) for page in env.found_docs)
    found = report.load(Path(env.srcdir) / DATA) or {"rows": []}
    for number, said, page in (
        (
            asserts,
            f"asserts ran against PyTorch {release}",
            "about/how-this-site-stays-true",
        ),
        (len(pages), "pages, each one script", "gallery/index"),
        (len(errors), "errors, each with cause and fix", "gallery/errors/index"),
        (len(found["rows"]), "operators probed for what they keep", "reference/operators"),
    ):
        if number and page in env.found_docs:
            yield number, said, page


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the numbers in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(proof)):
        items = []
        for number, said, target in counted(app.env):
            words = nodes.inline("", "", nodes.strong("", f"{number:,}"), nodes.Text(f" {said}"))
            items.append(nodes.list_item("", nodes.paragraph("", "", link_to(app, page, target, words))))
        place.replace_self(nodes.bullet_list("", *items, classes=["proof"]))


def setup(app: Sphinx) -> None:
    app.add_node(proof)
    app.add_directive("proof", Proof)
    PAGE.connect(app, lambda app, env: list(counted(env)))
    app.connect("doctree-resolved", fill)
