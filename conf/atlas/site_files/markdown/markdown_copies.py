"""Beside each page the same page as Markdown, ``page.html.md``: for language models, readers in a terminal, and other tools.

Pandoc converts the finished page, so that outputs and tables are in it. Of a figure there are its words and its table.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pypandoc
from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.gallery.process import count_cores

logger = logging.getLogger(__name__)

_ARTICLE = re.compile(r"<article[^>]*>(.*)</article>", re.DOTALL)
#: What is for the eye or the hand, and what stands for it in a text.
_REPLACED: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(pattern, re.DOTALL), by)
    for pattern, by in (
        (r'<div class="graph-bar".*?</script>', ""),
        (r"<form\b.*?</form>", ""),
        (r'<svg[^>]*aria-label="([^"]*)"[^>]*>.*?</svg>', r"<p><em>Figure: \1</em></p>"),
        (r"<svg\b.*?</svg>", ""),  # an icon
        (r'<a class="headerlink".*?</a>|<script.*?</script>', ""),
        (r'(<span class="file-size"[^>]*>)[^<]*', r"\1"),  # known only when this copy is written
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
_OPTIONS = ["--from=html-native_divs-native_spans", "--to=gfm-raw_html+tex_math_dollars", "--wrap=none"]


def to_markdown(page: str) -> str:
    """The article of a page of HTML as Markdown.

    :raises subprocess.CalledProcessError: if pandoc fails.

    >>> print(to_markdown('<nav>no</nav><article><h1>One<a class="headerlink" href="#one">¶</a></h1>2</article>').strip())
    # One
    <BLANKLINE>
    2
    """
    found = _ARTICLE.search(page)
    article = found[1] if found else ""
    for pattern, by in _REPLACED:
        article = pattern.sub(by, article)
    done = subprocess.run(
        [pypandoc.get_pandoc_path(), *_OPTIONS], input=article, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout


def write(app: Sphinx, exception: Exception | None) -> None:
    """Convert the pages that are newer than their copies; if one cannot be converted, the build fails.

    Connected to ``build-finished``.
    """
    if exception is not None or app.builder.name != "html":
        return
    pages = [Path(app.builder.get_outfilename(name)) for name in sorted(app.env.found_docs)]
    twins = {page: twin_of(page) for page in pages if page.exists()}
    stale = [
        page for page, twin in twins.items() if not twin.exists() or twin.stat().st_mtime_ns < page.stat().st_mtime_ns
    ]
    with ThreadPoolExecutor(count_cores()) as pool:
        for page, done in zip(stale, pool.map(_try, stale), strict=True):
            if isinstance(done, subprocess.CalledProcessError):
                said = done.stderr.strip()
                logger.error(
                    "%s: pandoc cannot make Markdown of it: %s", page, said, type="atlas", subtype="markdown"
                )
                app.statuscode = 1
            else:
                twins[page].write_text(done, encoding="utf-8")


def twin_of(page: Path) -> Path:
    return page.with_name(page.name + ".md")


def _try(page: Path) -> str | subprocess.CalledProcessError:
    try:
        return to_markdown(page.read_text(encoding="utf-8"))
    except subprocess.CalledProcessError as error:
        return error


def announce(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Mapping[str, Any] | None
) -> None:
    """Say in the page's head where its twin is. Connected to ``html-page-context``."""
    if doctree is not None and app.builder.name == "html":
        twin = twin_of(Path(app.builder.get_outfilename(name))).name
        context["metatags"] = (
            context.get("metatags", "") + f'\n<link rel="alternate" type="text/markdown" href="{twin}">'
        )


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", announce)
    app.connect("build-finished", write)
