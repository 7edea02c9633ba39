"""Which names of PyTorch a page uses, found in the code that it shows: a line on each page, and an index of all.

``directive``    the line and the index
``code_reader``  reads code, without running it
``torch_api``    asks PyTorch which names it has
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import directive

    for module in [directive]:
        module.setup(app)
