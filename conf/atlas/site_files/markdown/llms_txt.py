"""``llms.txt``: the pages by chapter, each with a sentence and its Markdown, for a language model that looks for one.

The form is that of https://llmstxt.org.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sphinx import addnodes
from sphinx.application import Sphinx

from atlas.page_parts.sharing.description import description
from atlas.toolbox import one_line


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``, after the pages are written."""
    if exception is not None or app.builder.name != "html":
        return
    (Path(app.outdir) / "llms.txt").write_text("\n".join(_lines(app)) + "\n", encoding="utf-8")


def summary(app: Sphinx) -> str:
    """What the front page says of the site; empty if it says nothing."""
    return description(app.env.get_doctree(app.config.root_doc))


def chapters(app: Sphinx) -> Iterator[tuple[str, list[str]]]:
    """The titles of the parts of the site, each with its pages, in the order of the front page. Lists of pages are left out."""
    for toctree in app.env.get_doctree(app.config.root_doc).findall(addnodes.toctree):
        pages = list(toctree["includefiles"])
        alone = [page for page in pages if page not in app.env.toctree_includes]
        if alone:
            yield toctree["caption"] or app.config.project, alone
        for chapter in pages:
            if chapter not in alone:
                yield _title(app, chapter), [chapter, *app.env.toctree_includes[chapter]]


def _lines(app: Sphinx) -> Iterator[str]:
    yield f"# {app.config.project}"
    if said := summary(app):
        yield ""
        yield f"> {said}"
    for title, pages in chapters(app):
        yield from _section(app, title, pages)


def _section(app: Sphinx, title: str, pages: list[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    for page in pages:
        described = app.env.metadata[page].get("og:description")
        sentence = f": {described}" if described else ""
        yield f"- [{_title(app, page)}]({app.config.html_baseurl}{app.builder.get_target_uri(page)}.md){sentence}"


def _title(app: Sphinx, page: str) -> str:
    return one_line(app.env.titles[page].astext())


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
