"""The formulas from which PyTorch's backward nodes were generated, and the page that lists them.

``derivatives``      reads them out of the installed PyTorch, and keeps them
``table_directive``  ``{derivative-formulas}``, and has them read before pages are
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import table_directive

    table_directive.setup(app)
