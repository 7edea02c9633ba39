"""``llms-full.txt``: the text of all pages in one file, for a language model that is given the whole site.

It is made of the pages' Markdown, so outputs and tables are in it, and no picture: of each figure there are its words. The
extension sphinx-llms-txt was tried: it joins the sources, which hold no output.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

from atlas.toolbox import write_if_changed

from .llms_txt import chapters, summary
from .markdown_copies import twin_of

FILE = "llms-full.txt"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``, after the pages' Markdown is written. What is there and the same is left alone."""
    if exception is not None or app.builder.name != "html":
        return
    write_if_changed(Path(app.outdir, FILE), "\n\n".join(_parts(app)) + "\n")


def _parts(app: Sphinx) -> Iterator[str]:
    yield f"# {app.config.project}"
    if said := summary(app):
        yield f"> {said}"
    yield "A line of hyphens and the address of its source begin each page. Links are relative to that address."
    for _title, pages in chapters(app):
        for page in pages:
            twin = twin_of(Path(app.builder.get_outfilename(page)))
            if twin.is_file():  # what pandoc could not convert is an error already
                address = f"{app.config.html_baseurl}{app.builder.get_target_uri(page)}"
                yield f"---\n\nSource: {address}\n\n{twin.read_text(encoding='utf-8').strip()}"


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
