"""What every differentiable operator of PyTorch does with memory and gradients: measured by ``conf/measure/operators.py``.

``probing``           has it run if its result is of another PyTorch or program
``table_directive``   ``{operator-table}``
``figure_directive``  ``{operator-figure}``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "table_directive", "figure_directive")
