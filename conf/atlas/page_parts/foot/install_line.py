"""What to install to run an example on one's own machine, as a line to copy below its downloads.

``notebooks`` asks for the line below a Markdown page.

The packages are those that the script imports, and the PyTorch is the one that made the page.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from atlas.gallery.notebooks import list_packages

from .example_footer import downloads_of

CLASS = "install-line"


def command(code: str) -> str:
    """The line for a script with this code.

    :raises SyntaxError: if the code is no Python.
    """
    torch = version("torch").partition("+")[0]
    return " ".join(
        ["pip install", f"torch=={torch}", *(package for package in list_packages(code) if package != "torch")]
    )


def offer(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the line below the downloads. Connected to ``doctree-resolved``. A script that is broken is reported elsewhere."""
    box = downloads_of(document)
    script = Path(app.srcdir, f"{page}.py")
    if box is None or not script.is_file():
        return
    try:
        box.append(line(script.read_text(encoding="utf-8")))
    except (SyntaxError, ValueError):
        return


def line(code: str) -> nodes.container:
    """What a page says for a script with this code.

    :raises SyntaxError: if the code is no Python.
    """
    wanted = command(code)
    said = nodes.paragraph("", "To run it on your own machine:")
    return nodes.container("", said, nodes.literal_block(wanted, wanted, language="none"), classes=[CLASS])


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", offer)
