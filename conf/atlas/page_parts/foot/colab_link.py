"""A link that opens a page's notebook in Google Colab, beside its downloads: a machine with a GPU, and nothing to install.

Colab opens notebooks from GitHub, and the build makes them. So the workflow ``publish`` pushes them to a branch
of their own. The link is text: the page loads nothing from Colab.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx

from .edit_link import repository
from .example_footer import downloads_of

BRANCH = "notebooks"


def address(repository: str, page: str) -> str | None:
    """Where Colab opens the notebook of a page; None for sources that are not on GitHub.

    >>> address("https://github.com/someone/atlas/", "gallery/graphs/first_graph")
    'https://colab.research.google.com/github/someone/atlas/blob/notebooks/graphs/first_graph.ipynb'
    >>> address("https://git.example/atlas", "gallery/graphs/first_graph")
    """
    parts = urlsplit(repository)
    if parts.hostname != "github.com":
        return None
    notebook = f"{page.removeprefix('gallery/')}.ipynb"
    return f"https://colab.research.google.com/github/{parts.path.strip('/')}/blob/{BRANCH}/{notebook}"


def offer(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the link before the downloads. Connected to ``doctree-resolved``, when a change of the setting reaches all pages."""
    to = address(repository(app.config), page)
    box = downloads_of(document)
    if to and box is not None:
        link = nodes.reference("", "Open in Colab", refuri=to, internal=False)
        box.insert(0, nodes.container("", nodes.paragraph("", "", link), classes=["sphx-glr-download"]))


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", offer)
