"""Copy MyST-NB's style sheet before pages are written. MyST-NB copies it at the end of the build.

Sphinx adds a checksum to the address of a style sheet if the file is there when a page is written. So the first build writes
pages without the checksum of this file, and a second build writes them with it.

MyST-NB 1.4 has the bug; no issue was found that reports it. Delete this file when MyST-NB copies the file earlier than at
``build-finished`` (``setup`` in ``myst_nb/sphinx_ext.py``).
"""

from __future__ import annotations

from pathlib import Path

import myst_nb.sphinx_ext
from sphinx.application import Sphinx

from . import has_bug, warn_unknown


def copy(app: Sphinx) -> None:
    """Call MyST-NB's own function early. Connected to ``builder-inited``."""
    if app.builder.format != "html":
        return
    copy_styles = getattr(myst_nb.sphinx_ext, "add_global_html_resources", None)
    if copy_styles is None:
        warn_unknown("myst-nb", "add_global_html_resources", "pages of a first build lack the checksum of mystnb.css")
        return
    (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
    copy_styles(app, None)


def setup(app: Sphinx) -> None:
    if has_bug("myst-nb", (1, 4)):
        app.connect("builder-inited", copy)
