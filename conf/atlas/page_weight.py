"""What keeps a page light: it loads the scripts that it uses, small, and its sidebar names the pages of its own chapter.

``keep_needed_scripts``  Sphinx and its extensions put every script on every page. Which text of a page needs which script is
                         said beside the scripts, in ``conf.py``; a script without a word there stays on all pages.
``shrink_scripts``       The site's own scripts go out without comments and indentation, a quarter of what they weigh. They keep
                         their names and places, and so whatever loads them.
``collapse_sidebar``     furo asks Sphinx for a tree of all pages, so that each page, and the time to write it, would grow with
                         the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import rjsmin
from docutils import nodes
from sphinx.application import Sphinx

from atlas.page_store import connect_for_pages
from atlas.toolbox import write_if_changed

# -- Scripts --------------------------------------------------------------------------------------


def keep_needed_scripts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Take the others out. Connected to ``html-page-context``, after what adds scripts to a page."""
    body, needed = context.get("body", ""), app.config.atlas_scripts
    context["script_files"] = [
        script
        for script in context["script_files"]
        if re.search(needed.get(Path(script.filename or "").name, ""), body)
    ]


def shrink_scripts(sources: Path, out: Path) -> None:
    """Write each script of ``sources`` small over its copy in ``out``, unless that is there already.

    Of a template the copy is what Sphinx has made of it.
    """
    scripts = {out / source.name: source for source in sources.glob("*.js")}
    scripts |= {copy: copy for source in sources.glob("*.js.jinja") if (copy := out / source.stem).is_file()}
    for copy, source in sorted(scripts.items()):
        write_if_changed(copy, rjsmin.jsmin(source.read_text(encoding="utf-8")) + "\n")


def shrink_before_pages(app: Sphinx, *_page: object) -> None:
    """Connected to ``html-page-context``: Sphinx has copied the scripts, and puts a checksum of each into its address."""
    if not getattr(app, "atlas_scripts_are_small", False):  # once in each process that writes pages
        shrink_at_end(app, None)
        app.atlas_scripts_are_small = True


def shrink_at_end(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``: a build that writes no page has copied them, too."""
    if exception is None and app.builder.format == "html":
        shrink_scripts(Path(app.confdir) / "static", Path(app.outdir) / "_static")


# -- The sidebar ----------------------------------------------------------------------------------


def collapse_sidebar(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Give furo the collapsed tree, whatever it asks for: the branches above the page are open, and no others are walked.

    Connected to ``html-page-context``: after sphinx-notfound-page (400), which makes a tree of its own for the page 404, and
    before furo (500).
    """
    if toctree := context.get("toctree"):
        context["toctree"] = lambda **options: toctree(**options | {"collapse": True})


def setup(app: Sphinx) -> None:
    app.add_config_value("atlas_scripts", {}, "html", [dict])
    connect_for_pages(app, "html-page-context", collapse_sidebar, 450)
    connect_for_pages(app, "html-page-context", keep_needed_scripts, 900)
    connect_for_pages(app, "html-page-context", shrink_before_pages, 900)
    app.connect("build-finished", shrink_at_end)
