"""Put MyST-NB's style sheet in its place before pages are written, not after.

Sphinx adds a checksum to the address of a style sheet that it finds. MyST-NB copies its own at the end of a build, so a first
build and a second one would write different pages.
"""

from __future__ import annotations

from pathlib import Path

from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.application import Sphinx


def copy(app: Sphinx) -> None:
    """Connected to ``builder-inited``."""
    if app.builder.format == "html":
        (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
        add_global_html_resources(app, None)


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", copy)
