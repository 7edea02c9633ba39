"""What of a page can be found, kept in Sphinx's environment when the page is read.

Code is not searched word by word: the names of PyTorch that it uses come from ``names_index``, its messages from its outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import commonprefix

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.index_entries import split_index_msg

from atlas.toolbox import one_line

from .messages import fix, older_wordings, raised
from .words import words

LIST = 50  # entries at one place: they name the rows of a list
#: What holds no prose. What is marked ``no-search`` is on another page already, or varies.
_NO_PROSE = (nodes.literal_block, nodes.raw, nodes.math, nodes.math_block, nodes.comment, nodes.title, addnodes.index)


@dataclass(frozen=True, slots=True)
class Found:
    """A page as the search knows it.

    :ivar lead: the first sentences, which a result shows.
    :ivar symptoms: main index entries: what somebody would say who has the page's problem.
    :ivar row_anchor: of a page that is one long list, how the anchors of its rows begin. The rest is the row's name, with
        hyphens for dots.
    :ivar sections: anchor and title of each part that can be linked to: headings and terms.
    :ivar messages: what the page's code raises.
    :ivar wordings: how other versions word the message that a page about an error explains.
    :ivar fix: what to do, of a page about an error.
    :ivar fields: the words of each part of the page, and how often each is there.
    """

    title: str
    lead: str
    symptoms: list[str]
    row_anchor: str
    sections: list[tuple[str, str]]
    messages: list[str]
    wordings: list[str]
    fix: str
    fields: dict[str, Counter[str]]


def read(app: Sphinx, document: nodes.document) -> None:
    """Connected to ``doctree-read``, after what shapes the page, ``head`` and ``names_index``.

    To make words of a page takes longer than all else that the index needs, so it is done once, here.
    """
    env, page = app.env, app.env.docname
    first = next(iter(document.findall(nodes.title)), None)
    title = one_line(first.astext()) if first else page
    lead = env.metadata[page].get("og:description", "")
    symptoms, entries, rows = _entries(document)
    sections = list(_sections(document))
    messages, what_to_do = list(raised(document)), fix(document)
    wordings = list(older_wordings(document)) if what_to_do else []
    texts = {
        "title": [title],
        "symptoms": symptoms,
        "entries": entries,
        "rows": [name for name, _anchor in rows],
        "sections": [heading for _anchor, heading in sections],
        "lead": [lead],
        "messages": [*messages, *wordings],
        "spoken": env.atlas_names_spoken[page],
        "used": env.atlas_names_used[page],
        "body": _prose(document),
    }
    pages(env)[page] = Found(
        title=title,
        lead=lead,
        symptoms=symptoms,
        row_anchor=commonprefix([anchor for _name, anchor in rows]),
        sections=sections,
        messages=messages,
        wordings=wordings,
        fix=what_to_do,
        fields={name: Counter(words(" ".join(parts))) for name, parts in texts.items()},
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
            said = [one_line(part) for part in split_index_msg(kind, value)]
            if is_list:
                rows += [(name, anchor) for name in said]
            else:
                (main if emphasis == "main" else others).extend(said)
    return main, others, rows


def _sections(document: nodes.document) -> Iterator[tuple[str, str]]:
    """What has an anchor of its own: headings below the title, terms of a glossary with their translation."""
    sections = list(document.findall(nodes.section))
    for section in sections[1:]:
        if section["ids"] and isinstance(section[0], nodes.title):
            yield section["ids"][0], one_line(section[0].astext())
    for item in document.findall(nodes.definition_list_item):
        term = item[0]
        if isinstance(term.parent.parent.parent, addnodes.glossary) and term["ids"]:
            translation = next(iter(item[-1].findall(nodes.emphasis)), "")
            yield term["ids"][0], one_line(f"{term.astext()} {translation and translation.astext()}")


def _prose(node: nodes.Node) -> Iterator[str]:
    """The text of a page without its code, title, formulas, and what says ``no-search``."""
    if isinstance(node, nodes.Text):
        yield one_line(node)
    elif not isinstance(node, _NO_PROSE) and "no-search" not in getattr(node, "attributes", {}).get("classes", []):
        for child in node.children:
            yield from _prose(child)


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
