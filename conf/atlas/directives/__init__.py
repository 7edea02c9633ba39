"""What an author can write on a page: one module for each directive, with its node and its words.

``long_table``     a table of hundreds of rows, with a filter; used by rooms that have one
``quoted_message`` a message that this build cannot raise, and where it was seen
``in_short``       the box below a title that answers first
``fold``           ``<details>``: a solution, or code that measures, folded away
``predict``        a question that a reader answers before the solution is opened
``claims``         how many asserts of the page ran
``proof``          what the site rests on, in numbers
``varies``         this output differs from build to build, and why
``recorded``       what of a page needs a GPU, and on which one its outputs were made
``mathml``         formulas
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_DIRECTIVES = (
    "claims",
    "fold",
    "in_short",
    "mathml",
    "predict",
    "proof",
    "quoted_message",
    "recorded",
    "varies",
)


def setup(app: Sphinx) -> None:
    set_up(app, __name__, *_DIRECTIVES)
