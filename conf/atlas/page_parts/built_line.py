"""The line below each page of a published build that says what it was made from: date, commit, PyTorch, checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sphinx.application import Sphinx

from atlas.site_files.build_json import FILE, of_build

from .edit_link import repository


def tell(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Mapping[str, Any] | None) -> None:
    """Give the facts to the template of the page. Connected to ``html-page-context``."""
    if app.config.atlas_commit:
        address = repository(app.config)
        link = f"{address}/commit/{app.config.atlas_commit}" if address else ""
        context["built"] = of_build(app) | {"link": link, "file": FILE}


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", tell)
