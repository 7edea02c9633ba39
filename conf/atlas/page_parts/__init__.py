"""What every page gets around its text.

``hide_requests``     the code of examples without the comments that ask the site for something
``number_columns``    columns of numbers in tables, to the right
``sharing``           what a search engine or a shared link says of the page
``chinese_terms``     the language of words that are not English
``sidebar``           the pages of the same chapter, and the other chapters
``navigation_order``  the order in which the navigation has the pages, for lists of them
``foot``              what stands below the text: downloads; links to source, Colab, an issue; what it is about and built from
``assets``            the style sheet and the scripts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_PARTS = (
    "hide_requests",
    "number_columns",
    "sharing.description",
    "chinese_terms",
    "sidebar",
    "foot.edit_link",
    "foot.colab_link",
    "foot.install_line",
    "foot.report_link",
    "foot.scope_line",
    "foot.built_line",
    "assets.style_sheet",
    "assets.scripts",
    "assets.small_scripts",
)


def setup(app: Sphinx) -> None:
    set_up(app, __name__, *_PARTS)
