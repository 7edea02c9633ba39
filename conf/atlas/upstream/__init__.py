"""Bugs of other people's code, one file each: the issue, the versions that have the bug, and when to delete the file.

``myst_parser_793_table_widths``   the ``:widths:`` of a table have no effect
``myst_nb_css_before_pages``       a style sheet is copied too late for Sphinx to add its checksum

A workaround is for the versions that were seen to have the bug. A newer version is left alone, and the tests in
``tests/upstream/`` say whether it still needs the workaround.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

from sphinx.util import logging

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

logger = logging.getLogger(__name__)


def has_bug(package: str, last: tuple[int, int]) -> bool:
    """Whether the installed version is none newer than ``last``, the last one that was seen to have the bug.

    >>> has_bug("sphinx", (9999, 0)), has_bug("sphinx", (0, 1))
    (True, False)
    """
    major, minor = re.findall(r"\d+", version(package))[:2]
    return (int(major), int(minor)) <= last


def warn_unknown(package: str, missing: str, effect: str) -> None:
    """Say that a workaround is not applied, as the library has changed where it takes hold."""
    logger.warning(
        "%s %s has no %s any more, so its own result is used: %s; see conf/atlas/upstream",
        package,
        version(package),
        missing,
        effect,
    )


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "myst_parser_793_table_widths", "myst_nb_css_before_pages")
