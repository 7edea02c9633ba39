"""Which other pages a page of the gallery leads to, beside those that its author names: pages like it, and pages with its tags.

``similar``     pages that share names of PyTorch which few pages use
``tags``        the words of ``examples/tags.toml``, and what is wrong with them
``lines``       both at the end of a page
``tagged``      the list of all pages on the gallery's first page, which a reader filters by tag
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "tagged", "lines")
