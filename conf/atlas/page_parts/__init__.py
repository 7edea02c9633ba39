"""What every page gets around its text.

``sidebar``           the pages of the same chapter, and the other chapters
``navigation_order``  the order in which the navigation has the pages, for lists of them
``hide_requests``     the code of examples without the comments that ask the site for something
``description``       what a search engine or a shared link says of the page
``chinese_terms``     the language of words that are not English
``shared_picture``    what a shared link shows: the page's title and its first figure
``picture_card``      draws that
``edit_link``         "edit this page" leads to the script of an example
``colab_link``        opens an example's notebook in Google Colab
``install_line``      what to install to run an example on one's own machine
``example_footer``    where sphinx-gallery's downloads are, for parts that stand before them
``report_link``       opens an issue about the page, or about what the reader points at
``built_line``        what the page was built from
``style_sheet``       one style sheet instead of many
``scripts``           the scripts that the page uses, and no other
``small_scripts``     the site's own without comments
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_PARTS = (
    "hide_requests",
    "description",
    "chinese_terms",
    "shared_picture",
    "sidebar",
    "edit_link",
    "colab_link",
    "install_line",
    "report_link",
    "built_line",
    "style_sheet",
    "scripts",
    "small_scripts",
)


def setup(app: Sphinx) -> None:
    set_up(app, __name__, *_PARTS)
