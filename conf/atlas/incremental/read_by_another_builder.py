"""Write the pages that another builder has read.

All builders share what was read. A doctest build that comes after an edit reads the pages anew, those too that only depend on
what was edited: an example's figure, or the site's own code. The HTML builder then finds nothing left to read, looks at the
times of sources alone, and would leave the old pages on the site.
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
