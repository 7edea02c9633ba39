"""What an author can write on a page: one module for each directive, with its node and its words.

``graph_figure``   a backward graph as a drawing; ``graph_player`` the controls below it,
                   ``graph_code`` the lines on the page that made its cards,
                   ``graph_live`` what it says when a leaf is changed
``plot_figure``    a drawing of matplotlib's, in the colors of the theme
``long_table``     a table of hundreds of rows, with a filter; used by rooms that have one
``quoted_message`` a message that this build cannot raise, and where it was seen
``memory_cells``   a tensor beside the memory that it reads, to be transposed, sliced and viewed
``in_short``       the box below a title that answers first
``fold``           ``<details>``: a solution, or code that measures, folded away
``claims``         how many asserts of the page ran
``proof``          what the site rests on, in numbers
``varies``         this output differs from build to build, and why
``recorded``       what of a page needs a GPU, and on which one its outputs were made
``mathml``         formulas
``site_file``      a link to a file that is made for the whole site, with its size
``svg_source``     how a directive reads the drawing that it names
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_DIRECTIVES = (
    "claims",
    "fold",
    "graph_code",
    "graph_figure",
    "graph_live",
    "in_short",
    "mathml",
    "memory_cells",
    "plot_figure",
    "proof",
    "quoted_message",
    "recorded",
    "site_file",
    "varies",
)


def setup(app: Sphinx) -> None:
    set_up(app, __name__, *_DIRECTIVES)
