"""Put into finished pages how large the files are to which ``{site-file}`` leads, and see that they are there."""

from __future__ import annotations

import os
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.directives.site_file import is_made, named_on, with_sizes

logger = logging.getLogger(__name__)


def in_words(size: int) -> str:
    """
    >>> in_words(310), in_words(8_123_456)
    ('1 KB', '8.1 MB')
    """
    if size < 1_000_000:
        return f"{-(-size // 1000)} KB"
    return "{count} MB".format(count=f"{size / 1_000_000:.1f}")


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``, after all files are written.

    A page keeps its time: its Markdown is made of it without the sizes, and would be made again. If a file is not there,
    the build fails.
    """
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    for page in sorted(app.env.found_docs):
        named = [found for found in named_on(app, page) if is_made(app.config, found[0])]
        for name, source, line in named:
            if not (out / name).is_file():
                logger.error(
                    "this build makes no file %s: a name is a path below the site's root, such as llms.txt",
                    name,
                    location=f"{source}:{line}",
                    type="atlas",
                    subtype="site-file",
                )
                app.statuscode = 1
        if named:
            _fill(Path(app.builder.get_outfilename(page)), out)


def _fill(page: Path, out: Path) -> None:
    def said(name: str) -> str:
        return f" ({in_words((out / name).stat().st_size)})" if (out / name).is_file() else ""

    text = page.read_text(encoding="utf-8")
    filled = with_sizes(text, said)
    if filled != text:
        written = page.stat()
        page.write_text(filled, encoding="utf-8")
        os.utime(page, ns=(written.st_atime_ns, written.st_mtime_ns))


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
