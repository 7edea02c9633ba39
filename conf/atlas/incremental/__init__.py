"""Which unchanged pages are written again, and why.

Sphinx writes the pages whose sources changed. That is for an author, who builds again and again; a build with ``-E -a``, as for
a release or in CI, writes all pages and does without this room.

``up_to_date``               none, when nothing has changed: Sphinx is not started
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
    set_up(app, __name__, "navigation_changed", "assets_changed", "read_by_another_builder")
