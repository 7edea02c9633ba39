"""Two lines at the end of a page of the gallery: pages like it that it does not link to yet, and its tags."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from atlas.toolbox import link_to

from . import similar, tagged

GALLERY = "gallery/"


def read(app: Sphinx, document: nodes.document) -> None:
    """Keep what an example links to. Connected to ``doctree-read``, after ``names_index``."""
    if app.env.docname.startswith(GALLERY) and not app.env.docname.endswith("/index"):
        found = document.findall(addnodes.pending_xref)
        _linked(app.env)[app.env.docname] = sorted({(node["reftype"], node["reftarget"]) for node in found})


def _linked(env: BuildEnvironment) -> dict[str, list[tuple[str, str]]]:
    if not hasattr(env, "atlas_linked"):
        env.atlas_linked = {}
    return env.atlas_linked


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Connected to ``env-purge-doc``."""
    _linked(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: Iterable[str], other: BuildEnvironment) -> None:
    """Take over what another process read. Connected to ``env-merge-info``."""
    _linked(env).update((page, links) for page, links in _linked(other).items() if page in pages)


def choose(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Choose what each page leads to, and name the pages to write: those that lead elsewhere now.

    Connected to ``env-updated``, after ``names_index``.
    """
    labels = env.get_domain("std").anonlabels
    examples = sorted(_linked(env))
    about = similar.vectors(env.atlas_names_used, env.atlas_names_spoken)
    tags = tagged.tags(app).tags_of
    env.atlas_leads = {}

    def shares(page: str, other: str) -> bool:
        """Whether two pages have a tag in common, if they have any: the same names may serve another purpose."""
        own, others = (tags.get(each.removeprefix(GALLERY), []) for each in (page, other))
        return not own or not others or not set(own).isdisjoint(others)

    for page in examples:
        linked = {
            labels[to][0] if kind == "ref" else _absolute(page, to)
            for kind, to in _linked(env)[page]
            if kind != "ref" or to in labels
        }
        like = similar.nearest(
            page, about, [other for other in examples if other not in linked and shares(page, other)]
        )
        titles = [(other, env.titles[other].astext()) for other in like]
        env.atlas_leads[page] = titles, tags.get(page.removeprefix(GALLERY), []), tagged.PAGE.of(env) is not None
    if app.builder.format != "html":  # what another builder sees, the pages do not show yet
        return []
    before, env.atlas_leads_in_html = getattr(env, "atlas_leads_in_html", {}), env.atlas_leads
    return [page for page in examples if env.atlas_leads[page] != before.get(page)]


def _absolute(page: str, to: str) -> str:
    """The page that ``:doc:`` names."""
    return to.lstrip("/") if to.startswith("/") else Path(page).with_name(to).as_posix()


def related_lines(app: Sphinx, page: str) -> list[nodes.Node]:
    """The two lines, as far as the page has them, for its foot."""
    related, tags, _to_a_list = app.env.atlas_leads.get(page, ([], [], False))
    links = [link_to(app, page, other, title) for other, title in related]
    found = [_line("Related pages:", links, " · ")] if links else []
    home = tagged.PAGE.of(app.env)
    if home and tags:
        links = [link_to(app, page, home, tag, after=f"?tag={quote(tag)}") for tag in tags]
        found.append(_line("Tags:", links, ", "))
    return found


def _line(label: str, links: list[nodes.reference], between: str) -> nodes.paragraph:
    # the words are other pages'; the search would find this page for them
    line = nodes.paragraph("", "", nodes.Text(label), classes=["leads-on", "no-search"])
    for number, link in enumerate(links):
        line += [nodes.Text(between if number else " "), link]
    return line


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", choose)
