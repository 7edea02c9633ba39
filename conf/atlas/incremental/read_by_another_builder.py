"""Write the pages that another builder has read since.

All builders share the doctrees. After an edit, a doctest build reads the changed pages anew, and those that depend on what was
edited: on an example's figure, or on our own code. The HTML builder then finds no page left to read. It compares the times of
sources with those of pages, and would not write the pages whose own source did not change.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def pages_to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages that were read after they were written. Connected to ``env-updated``."""
    if app.builder.format != "html":
        return []
    return [page for page in sorted(env.found_docs) if _is_read_later(app, page)]


def _is_read_later(app: Sphinx, page: str) -> bool:
    read, written = Path(app.doctreedir, f"{page}.doctree"), Path(app.builder.get_outfilename(page))
    return written.exists() and read.stat().st_mtime_ns > written.stat().st_mtime_ns


def setup(app: Sphinx) -> None:
    app.connect("env-updated", pages_to_write)
