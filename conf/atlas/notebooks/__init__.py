"""Makes a notebook and a script of a Markdown page that shows code, for a reader who wants to run it.

An example has both from sphinx-gallery, and its notebook from ``runner.notebook``. Here they are made when the page is read:

``blocks``          text and code of a page, in their order
``plain_markdown``  text as Jupyter shows it, without what only MyST knows
``own_needs``       what the code needs of this site: then it can run nowhere else, and the page says so
``files``           the notebook and the script, as text
``offer``           writes them, and puts the links to them below the page

jupytext was tried. It takes ``{code-cell}`` for code and all else for text: a ``{doctest}`` stays a block with prompts, and
what is for Sphinx stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "offer")
