"""``llms.txt``: the pages by chapter, each with a sentence and its Markdown, for a language model that looks for one.

The form is that of https://llmstxt.org.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sphinx import addnodes
from sphinx.application import Sphinx

from atlas.page_parts.description import description


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``, after the pages are written."""
    if exception is not None or app.builder.name != "html":
        return
    (Path(app.outdir) / "llms.txt").write_text("\n".join(_lines(app)) + "\n", encoding="utf-8")


def _lines(app: Sphinx) -> Iterator[str]:
    root = app.config.root_doc
    index = app.env.get_doctree(root)
    yield f"# {app.config.project}"
    if summary := description(index):
        yield ""
        yield f"> {summary}"
    for toctree in index.findall(addnodes.toctree):
        pages = list(toctree["includefiles"])
        alone = [page for page in pages if page not in app.env.toctree_includes]
        if alone:
            yield from _section(app, toctree["caption"] or app.config.project, alone)
        for chapter in pages:
            if chapter not in alone:
                yield from _section(app, _title(app, chapter), [chapter, *app.env.toctree_includes[chapter]])


def _section(app: Sphinx, title: str, pages: list[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    for page in pages:
        described = app.env.metadata[page].get("og:description")
        sentence = f": {described}" if described else ""
        yield f"- [{_title(app, page)}]({app.config.html_baseurl}{app.builder.get_target_uri(page)}.md){sentence}"


def _title(app: Sphinx, page: str) -> str:
    return _one_line(app.env.titles[page].astext())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
