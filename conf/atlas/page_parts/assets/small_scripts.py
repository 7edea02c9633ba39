"""The site's own scripts as a browser needs them: without comments and indentation, a quarter of what they weigh.

They keep their names and places, and so whatever loads them. ``conf/static`` has them as they are read.
"""

from __future__ import annotations

from pathlib import Path

import rjsmin
from sphinx.application import Sphinx

from atlas.toolbox import write_if_changed


def write(sources: Path, out: Path) -> None:
    """Write each script of ``sources`` small over its copy in ``out``, unless that is there already.

    Of a template the copy is what Sphinx has made of it.
    """
    scripts = {out / source.name: source for source in sources.glob("*.js")}
    scripts |= {copy: copy for source in sources.glob("*.js.jinja") if (copy := out / source.stem).is_file()}
    for copy, source in sorted(scripts.items()):
        write_if_changed(copy, rjsmin.jsmin(source.read_text(encoding="utf-8")) + "\n")


def before_pages(app: Sphinx, *_page: object) -> None:
    """Connected to ``html-page-context``: Sphinx has copied the scripts, and puts a checksum of each into its address."""
    if not getattr(app, "_atlas_small_scripts", False):  # once in each process that writes pages
        after_pages(app, None)
        app._atlas_small_scripts = True


def after_pages(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``: a build that writes no page has copied them, too."""
    if exception is None and app.builder.format == "html":
        write(Path(app.confdir) / "static", Path(app.outdir) / "_static")


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", before_pages, priority=900)
    app.connect("build-finished", after_pages)
