"""Let "edit this page" of an example lead to its script, not to the file in ``docs/gallery/`` that is made from the script.

``theme_source_edit_link`` and ``theme_source_view_link`` are the variables of sphinx-basic-ng's templates, which furo uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config


def source_of(page: str) -> str | None:
    """The file that a page of the gallery is made from, from the root of the repository; None for any other page.

    >>> source_of("gallery/graphs/first_graph"), source_of("gallery/graphs/index"), source_of("guide/which-switch")
    ('examples/graphs/first_graph.py', 'examples/graphs/GALLERY_HEADER.rst', None)
    """
    folder, _, rest = page.partition("/")
    if folder != "gallery":
        return None
    if rest == "index" or rest.endswith("/index"):
        return f"examples/{rest.removesuffix('index')}GALLERY_HEADER.rst"
    return f"examples/{rest}.py"


def repository(config: Config) -> str:
    """The address of the sources, without a slash at its end; empty if there is none."""
    return config.html_theme_options.get("source_repository", "").rstrip("/")


def lead(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Mapping[str, Any] | None) -> None:
    """Give the theme the two links. Connected to ``html-page-context``. Without a repository there are no links."""
    source = source_of(name)
    address = repository(app.config)
    if source and address:
        branch = app.config.html_theme_options["source_branch"]
        for what, where in (("edit", "edit"), ("view", "blob")):
            context[f"theme_source_{what}_link"] = f"{address}/{where}/{branch}/{source}"


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", lead)
