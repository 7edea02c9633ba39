"""The pages as Markdown, for language models, readers in a terminal, and other tools.

``page.html.md``  beside each page the same page, with its outputs and tables; of a figure there are its words
``llms.txt``      the pages by chapter, each with a sentence and its Markdown, in the form of https://llmstxt.org

Pandoc converts the finished pages. sphinx-llm 1.1.0 leaves tables of pandas and figures as HTML tags; sphinx-llms-txt 0.7.1
joins the sources, which hold no output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import pypandoc
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from atlas.head import make_description
from atlas.page_store import connect_for_pages
from atlas.toolbox import one_line, write_whole

_ARTICLE = re.compile(r"<article[^>]*>(.*)</article>", re.DOTALL)
#: What is for the eye or the hand, and what stands for it in a text.
_REPLACED: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(pattern, re.DOTALL), by)
    for pattern, by in (
        (r'<div class="graph-bar".*?</script>', ""),
        (r'<form\b.*?</form>|<p class="eyebrow.*?</p>', ""),
        (r'<svg[^>]*aria-label="([^"]*)"[^>]*>.*?</svg>', r"<p><em>Figure: \1</em></p>"),
        (r"<svg\b.*?</svg>", ""),  # an icon
        (r'<a class="(?:headerlink|figure-alone)".*?</a>|<script.*?</script>', ""),
        (r'<div class="sphx-glr-download-link-note.*?</div>', ""),
        # a line of a table in Markdown is one line: pandoc leaves out a table that has a line break in a cell
        (r"<table.*?</table>", lambda table: re.sub(r"<br */?>", "; ", table[0])),
        (r'<div class="highlight-(?:none|default) notranslate"[^>]*><div class="highlight"><pre>', "<pre>"),
        (
            r'<div class="highlight-([\w-]+) notranslate"[^>]*><div class="highlight"><pre>',
            lambda language: f'<pre class="{language[1].lower()}">',
        ),
    )
]
_HTML, _MARKDOWN = "html-native_divs-native_spans", "gfm-raw_html+tex_math_dollars"


def write_markdown(app: Sphinx, exception: Exception | None) -> None:
    """Write both. Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    write_whole(Path(app.outdir, "llms.txt"), "\n".join(_list_llms_lines(app)) + "\n")
    write_copies(app)


# -- Each page ------------------------------------------------------------------------------------


def write_copies(app: Sphinx) -> None:
    """Convert the pages that are newer than their copies."""
    pages = [Path(app.builder.get_outfilename(name)) for name in sorted(app.env.found_docs)]
    copies = {page: find_copy(page) for page in pages if page.exists()}
    stale = [page for page, copy in copies.items() if not copy.exists() or _get_time(copy) < _get_time(page)]
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        texts = pool.map(lambda page: convert_page(page.read_text(encoding="utf-8")), stale)
        for page, text in zip(stale, texts, strict=True):
            write_whole(copies[page], text)


def find_copy(page: Path) -> Path:
    """Where the Markdown of a page is, given the file of the page."""
    return page.with_name(f"{page.name}.md")


def _get_time(path: Path) -> int:
    return path.stat().st_mtime_ns


def convert_page(page: str) -> str:
    """The article of a page of HTML as Markdown.

    :raises RuntimeError: if pandoc fails.

    >>> print(convert_page('<nav>no</nav><article><h1>One<a class="headerlink" href="#one">¶</a></h1>2</article>').strip())
    # One
    <BLANKLINE>
    2
    """
    found = _ARTICLE.search(page)
    article = found[1] if found else ""
    for pattern, by in _REPLACED:
        article = pattern.sub(by, article)
    return pypandoc.convert_text(article, _MARKDOWN, _HTML, ["--wrap=none", "--quiet"], verify_format=False)


def link_to_copy(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Say in the page's head where its copy is, and give the template its name. Connected to ``html-page-context``."""
    if document is not None and app.builder.name == "html":
        copy = find_copy(Path(app.builder.get_outfilename(page))).name
        context["markdown_copy"] = copy
        link = f'<link rel="alternate" type="text/markdown" href="{copy}">'
        context["metatags"] = f"{context.get('metatags', '')}\n{link}"


# -- All pages ------------------------------------------------------------------------------------


def list_chapters(app: Sphinx) -> Iterator[tuple[str, list[str]]]:
    """The titles of the parts of the site, each with its pages, in the order of the front page. Lists of pages are left out."""
    for toctree in app.env.get_doctree(app.config.root_doc).findall(addnodes.toctree):
        pages = list(toctree["includefiles"])
        alone = [page for page in pages if page not in app.env.toctree_includes]
        if alone:
            yield toctree["caption"] or app.config.project, alone
        for chapter in pages:
            if chapter not in alone:
                yield _get_title(app, chapter), [chapter, *app.env.toctree_includes[chapter]]


def _list_llms_lines(app: Sphinx) -> Iterator[str]:
    yield f"# {app.config.project}"
    if said := make_description(app.env.get_doctree(app.config.root_doc)):
        yield f"\n> {said}"
    for title, pages in list_chapters(app):
        yield f"\n## {title}\n"
        for page in pages:
            described = app.env.metadata[page].get("og:description")
            address = f"{app.config.html_baseurl}{app.builder.get_target_uri(page)}.md"
            yield f"- [{_get_title(app, page)}]({address})" + (f": {described}" if described else "")


def _get_title(app: Sphinx, page: str) -> str:
    return one_line(app.env.titles[page].astext())


def setup(app: Sphinx) -> None:
    connect_for_pages(app, "html-page-context", link_to_copy)
    app.connect("build-finished", write_markdown)
