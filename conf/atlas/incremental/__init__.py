"""Which unchanged pages are written again, and why. A build from nothing does without this room.

``navigation_changed``       all pages, when a title or the order of pages changed: the sidebar shows them
``read_by_another_builder``  pages that a doctest build has read since they were written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import navigation_changed, read_by_another_builder

    for module in [navigation_changed, read_by_another_builder]:
        module.setup(app)
