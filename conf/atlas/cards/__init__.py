"""Cards that lead to pages: chapters on the front page, pages on the first page of their chapter.

``facts``          what a card says of a page, found when the page is read
``minutes``        how long it takes to read
``before``         what to read before it
``card``           one card
``ticks``          the line about pages that were read
``chapter_map``    the cards of a chapter's pages
``chapters``       the cards of all chapters
``learning_path``  a list of pages to read one after the other
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "facts", "chapter_map", "chapters", "learning_path")
