"""The line at the end of an example or a guide page about what its sentences are about, so that each need not say so again."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

#: Where the line leads: the section says what is left out, and why.
PAGE, SECTION = "about/how-this-site-stays-true", "what-a-sentence-is-about"
_CHAPTERS = ("gallery/", "guide/")


def tell(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Give the line to the template of the page. Connected to ``html-page-context``."""
    if (
        document is None
        or not name.startswith(_CHAPTERS)
        or name.endswith("/index")
        or PAGE not in app.env.found_docs
    ):
        return
    link = f'<a href="{context["pathto"](PAGE)}#{SECTION}">{"eager code on a CPU, with dense, real tensors"}</a>'
    context["scope"] = f"Unless it says otherwise, a sentence here is about {link}."


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", tell)
