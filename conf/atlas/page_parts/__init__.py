"""What every page gets around its text.

``sharing``           the picture that a shared link shows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "sharing.shared_picture")
