"""What of a page can be found, kept in Sphinx's environment when the page is read.

Code is not searched word by word: the names of PyTorch that it uses come from ``names_index``, its messages from its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from posixpath import commonprefix

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.index_entries import split_index_msg

from atlas.page_parts.description import description

from .messages import fix, older_wordings, raised

LIST = 50  # entries at one place: they name the rows of a list
#: What holds no prose. What is marked ``no-search`` is on another page already, or varies.
_NO_PROSE = (nodes.literal_block, nodes.raw, nodes.math, nodes.math_block, nodes.comment, nodes.title, addnodes.index)


@dataclass(frozen=True, slots=True)
class Found:
    """A page as the search knows it.

    :ivar lead: the first sentences, which a result shows.
    :ivar symptoms: main index entries: what somebody would say who has the page's problem.
    :ivar entries: the other index entries.
    :ivar rows: of a page that is one long list, the names in it: main index entries with an anchor each.
    :ivar row_anchor: how the anchors of the rows begin. The rest is the name, with hyphens for dots.
    :ivar sections: anchor and title of each part that can be linked to: headings, terms, rows with an anchor.
    :ivar messages: what the page's code raises.
    :ivar wordings: how other versions word the message that a page about an error explains.
    :ivar fix: what to do, of a page about an error.
    """

    title: str
    lead: str = ""
    symptoms: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    row_anchor: str = ""
    sections: list[tuple[str, str]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)
    fix: str = ""
    body: str = ""


def read(app: Sphinx, document: nodes.document) -> None:
    """Connected to ``doctree-read``, after what shapes the page."""
    env = app.env
    title = next(iter(document.findall(nodes.title)), None)
    symptoms, entries, rows = _entries(document)
    pages(env)[env.docname] = Found(
        title=_one_line(title.astext()) if title else env.docname,
        lead=description(document),
        symptoms=symptoms,
        entries=entries,
        rows=[name for name, _anchor in rows],
        row_anchor=commonprefix([anchor for _name, anchor in rows]),
        sections=list(_sections(document)),
        messages=list(raised(document)),
        wordings=list(older_wordings(document)),
        fix=fix(document),
        body=" ".join(_prose(document)),
    )


def pages(env: BuildEnvironment) -> dict[str, Found]:
    """All pages that were read, by name. Sphinx keeps them from build to build."""
    if not hasattr(env, "atlas_search"):
        env.atlas_search = {}
    return env.atlas_search


def _entries(document: nodes.document) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """The main index entries, the others, and those of a long list, each with its anchor."""
    main, others, rows = [], [], []
    for index in document.findall(addnodes.index):
        if isinstance(index.parent, nodes.term):  # of a glossary: it is a part of its page
            continue
        is_list = len(index["entries"]) >= LIST
        for kind, value, anchor, emphasis, _category in index["entries"]:
            words = [_one_line(word) for word in split_index_msg(kind, value)]
            if is_list:
                rows += [(word, anchor) for word in words]
            else:
                (main if emphasis == "main" else others).extend(words)
    return main, others, rows


def _sections(document: nodes.document) -> Iterator[tuple[str, str]]:
    """What has an anchor of its own: headings below the title, terms of a glossary with their translation, rows."""
    sections = list(document.findall(nodes.section))
    for section in sections[1:]:
        if section["ids"] and isinstance(section[0], nodes.title):
            yield section["ids"][0], _one_line(section[0].astext())
    for item in document.findall(nodes.definition_list_item):
        term = item[0]
        if isinstance(term.parent.parent.parent, addnodes.glossary) and term["ids"]:
            translation = next(iter(item[-1].findall(nodes.emphasis)), "")
            yield term["ids"][0], _one_line(f"{term.astext()} {translation and translation.astext()}")
    for row in document.findall(nodes.row):
        if row["ids"]:
            yield row["ids"][0], _one_line(row[0].astext())


def _prose(node: nodes.Node) -> Iterator[str]:
    """The text of a page without its code, title, formulas, and what says ``no-search``."""
    if isinstance(node, nodes.Text):
        yield _one_line(node)
    elif not isinstance(node, _NO_PROSE) and "no-search" not in getattr(node, "attributes", {}).get("classes", []):
        for child in node.children:
            yield from _prose(child)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Connected to ``env-purge-doc``."""
    pages(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, names: Iterable[str], other: BuildEnvironment) -> None:
    """Take over what another process read. Connected to ``env-merge-info``."""
    for name in names:
        pages(env)[name] = pages(other)[name]


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
