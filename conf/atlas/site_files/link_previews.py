"""``link-previews.js``: what a link to a page or to a term of a glossary shows to who points at it, or comes to it by keyboard.

Of a page that is its description, the beginning of its *In short* box; of a term the first sentences of its definition.
``conf/static/link_previews.js`` loads the file at the first such link. It is a script and not JSON, so that it loads from a
folder too, where a browser refuses to fetch.

Extensions that were tried: sphinx-tippy loads two scripts from a CDN and writes a script for each page, which that page loads
whether somebody asks or not. sphinx-hoverxref wants the API of Read the Docs, and is no longer developed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from atlas.page_parts.sharing.description import plain
from atlas.toolbox import first_sentences, one_line, write_whole

FILE = "link-previews.js"
LONGEST = 220  # characters of a definition; a first sentence may be longer


def texts(app: Sphinx) -> dict[str, list[str]]:
    """Title and text of each page and term, by their addresses below the site's root."""
    found = {}
    for page in sorted(app.env.found_docs):
        if said := app.env.metadata[page].get("og:description"):
            found[app.builder.get_target_uri(page)] = [one_line(app.env.titles[page].astext()), said]
    objects = app.env.domains.standard_domain.get_objects()
    for page in sorted({page for _name, _shown, kind, page, _anchor, _priority in objects if kind == "term"}):
        for anchor, title, definition in _terms(app.env.get_doctree(page)):
            found[f"{app.builder.get_target_uri(page)}#{anchor}"] = [title, definition]
    return found


def _terms(document: nodes.document) -> Iterator[tuple[str, str, str]]:
    """Anchor, name and first sentences of each term. A translation, in italics above the definition, stands behind the name."""
    for glossary in document.findall(addnodes.glossary):
        for item in glossary.findall(nodes.definition_list_item):
            paragraphs = list(item[-1].findall(nodes.paragraph))
            is_translated = (
                len(paragraphs) > 1 and isinstance(paragraphs[0][0], nodes.emphasis) and len(paragraphs[0]) == 1
            )
            translation = paragraphs.pop(0).astext() if is_translated else ""
            definition = first_sentences(plain(paragraphs[0]), LONGEST) if paragraphs else ""
            for term in item.findall(nodes.term):
                yield term["ids"][0], one_line(f"{term.astext()} {translation}"), definition


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    data = json.dumps(texts(app), ensure_ascii=False, separators=(",", ":"))
    write_whole(Path(app.outdir, FILE), f"window.atlasLinkPreviews={data}\n")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
