"""What every differentiable operator of PyTorch does with memory and gradients, measured.

``python -m atlas.operators FILE`` probes the operators of PyTorch's own test database and writes what was found to FILE.

``samples``           calls of an operator that differ as much as possible
``probe``             measures one operator on them
``kinds``             says for which samples something was found
``report``            keeps the result, and knows when it is out of date
``probing``           then makes it anew
``table_directive``   ``{operator-table}``, and has the operators probed before pages are read
``figure_directive``  ``{operator-figure}``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "table_directive", "figure_directive")
