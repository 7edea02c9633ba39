"""How a room is set up: its modules one after the other, each by its own ``setup``.

They are imported only then: parts of a room are also used where Sphinx is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def set_up(app: Sphinx, room: str, *modules: str) -> None:
    """Call the ``setup`` of ``modules``, in their order.

    :param room: the package that they are in, as its ``__name__``.
    """
    for module in modules:
        import_module(f"{room}.{module}").setup(app)
