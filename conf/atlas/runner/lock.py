"""One build of a checkout at a time: builds share sphinx-gallery's cache, the doctrees and the folders of what runs."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TextIO

from sphinx.util import logging

logger = logging.getLogger(__name__)


def take(folder: Path) -> TextIO:
    """Wait until no other process builds in ``folder``; none will until the file returned is closed or this process ends.

    The lock belongs to this process alone, however it ends: no example and no writer of pages that was forked from it, and
    outlives it, keeps the next build waiting.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / ".lock").open("w")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock(), which a forked process would share
    except (BlockingIOError, PermissionError):
        logger.info("another build of this checkout is running (nox -s serve?): waiting until it has ended")
        fcntl.lockf(file, fcntl.LOCK_EX)
    return file
