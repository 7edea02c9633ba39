"""What an example's page says of other versions: on which its asserts hold, and how the message of an error is worded there."""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from atlas.directives.claims import claims
from atlas.directives.fold import details
from atlas.toolbox import Refusal

from . import measured
from .history import History
from .sources import history_for

GALLERY = "gallery/"
ERRORS = "gallery/errors/"
PAGE = "/reference/versions"
OUTPUT = "sphx-glr-script-out"
"""sphinx-gallery's class of outputs: it is one, of another version."""


def tell(app: Sphinx, document: nodes.document) -> None:
    """Connected to ``doctree-read``, before the search reads the messages of a page.

    :raises Refusal: if a file of data cannot be used.
    """
    name = app.env.docname
    if not name.startswith(GALLERY):
        return
    try:
        history = history_for(app.env, name)
    except measured.DataError as error:
        raise Refusal(str(error)) from None
    if history is None:
        return
    page = name.removeprefix(GALLERY)
    holds, _fails = history.holds_on(page)
    count = next(iter(document.findall(claims)), None)
    if count is not None and holds:
        they = " Those {} hold on ".format(count["count"]) if count["recorded"] else " They hold on "
        count += [nodes.Text(they), _link(f"PyTorch {_and(holds)}", name), nodes.Text(" too.")]
    if name.startswith(ERRORS):
        _add_wordings(document, history, page)


def _add_wordings(document: nodes.document, history: History, page: str) -> None:
    """A fold with other wordings of the page's first message, at the end of the section whose code raises it."""
    found = history.wordings(page)
    first = next((ours for pairs in found.values() for ours, _theirs in pairs), None)
    section = (
        next((node for node in document.findall(nodes.section) if _prints(node, first)), None) if first else None
    )
    if section is None:
        return
    fold = details(summary="In other versions of PyTorch", classes=["wordings"])
    by_words: dict[str, list[str]] = {}
    for version, pairs in found.items():
        for ours, theirs in pairs:
            if ours == first:
                by_words.setdefault(theirs, []).append(version)
    for words, versions in by_words.items():
        fold += nodes.paragraph("", f"On PyTorch {_and(versions)}:")
        fold += nodes.literal_block(words, words, language="none", classes=[OUTPUT])
    inner = next((at for at, node in enumerate(section.children) if isinstance(node, nodes.section)), len(section))
    section.insert(inner, fold)


def _prints(section: nodes.section, message: str) -> bool:
    """Whether an output in a section, and in none of its parts, has the message."""
    return any(
        message in block.astext()
        for child in section.children
        if not isinstance(child, nodes.section)
        for block in child.findall(nodes.literal_block)
    )


def _link(words: str, page: str) -> addnodes.pending_xref:
    link = addnodes.pending_xref(
        "", nodes.inline("", words), refdomain="std", reftype="doc", reftarget=PAGE, refexplicit=True, refdoc=page
    )
    link["refwarn"] = True
    return link


def _and(versions: list[str]) -> str:
    """
    >>> _and(["2.4.1"]), _and(["2.4.1", "2.14.1", "2.15.0"])
    ('2.4.1', '2.4.1, 2.14.1 and 2.15.0')
    """
    *others, last = versions
    return "{others} and {last}".format(others=", ".join(others), last=last) if others else last


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", tell)
