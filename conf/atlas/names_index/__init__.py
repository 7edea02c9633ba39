"""Which names of PyTorch a page uses, found in the code that it shows: a line on each page, an index of all, and links.

``directive``    the line and the index
``shown_code``   the pieces of code of a page
``code_reader``  reads code, without running it
``torch_api``    asks PyTorch which names it has
``links``        the links to PyTorch's reference in the code
``inventory``    where that reference has each name
``refresh``      a maintainer's command: writes the inventory anew, and tells what is gone
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "directive", "links")
