"""Name every page in ``sitemap.xml``, not only those that this build wrote.

sphinx-sitemap collects the pages as they are written, and a build writes only what changed.
"""

from __future__ import annotations

import contextlib
import queue
from typing import Any

from sphinx.application import Sphinx


def collect(app: Sphinx, exception: Exception | None) -> None:
    """Fill sphinx-sitemap's queue with all pages, in order. Connected to ``build-finished``, before it."""
    links = getattr(app, "sitemap_links", None)
    if links is None or exception is not None or app.builder.format != "html":
        return
    with contextlib.suppress(queue.Empty):
        while True:
            links.get_nowait()
    for name in sorted(app.env.found_docs):
        links.put((f"{name}.html", None))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", collect, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
