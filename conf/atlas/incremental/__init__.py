"""What an author's next build does, and what it leaves out. A build with ``-E -a``, as for a release or in CI, reads and writes
all pages and does without this room.

``up_to_date``               nothing, when nothing has changed: Sphinx is not started
``few_pages_here``           a few pages are read without other processes

Sphinx writes the pages whose sources changed. These say which others are written again:

``navigation_changed``       all pages, when a title or the order of pages changed: the sidebar shows them
``assets_changed``           all pages, when a style sheet or a script changed: each page names its checksum
``read_by_another_builder``  pages that a doctest build has read since they were written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "few_pages_here", "navigation_changed", "assets_changed", "read_by_another_builder")
