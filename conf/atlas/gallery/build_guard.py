"""What one build owes to the next: no two at a time, none on top of a half-written site, and no warning that is said once.

Sphinx decides by time whether a page is current, so a page that was half written when the build was killed would stay. And it
warns of a page only when it reads or writes it, so a second build would be silent, and end well. So a file, the mark, lies
beside the doctrees while a build writes: one that finds it starts from the sources. The doctrees of pages with a warning are
removed at the end, and so the next build reads these pages again.
"""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path
from typing import TextIO

from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.config import Config
from sphinx.util.logging import NAMESPACE, WarningStreamHandler, getLogger

from atlas.toolbox import Refusal

logger = getLogger(__name__)


class _WarnedPages(logging.Filter):
    """Notes where warnings were, and lets all through. Sphinx's own filter has made a text of each location."""

    def __init__(self) -> None:
        super().__init__()
        self.locations: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "type", None) != "atlas":  # a failed example runs again, and its error is logged again
            self.locations.add(getattr(record, "location", None) or "")
        return True


def begin_build(app: Sphinx, config: Config) -> None:
    """Wait for other builds. After a killed one, have Sphinx read all again. Connected to ``config-inited``, first.

    :raises Refusal: if nothing can be written here.
    """
    try:
        app.atlas_lock = _take_lock(Path(app.doctreedir).parent)  # until this process ends
        mark = _find_mark(app)
        if mark.exists():
            logger.info("the last build was broken off: starting from the sources")
            _forget_all(app)
        mark.touch()
    except OSError as error:
        raise Refusal(f"nothing can be written here; build in a checkout that is yours: {error}") from None
    app.atlas_warned = _WarnedPages()
    for handler in logging.getLogger(NAMESPACE).handlers:
        if isinstance(handler, WarningStreamHandler):
            handler.addFilter(app.atlas_warned)


def end_build(app: Sphinx, exception: Exception | None) -> None:
    """Take the mark away, if all went well, and have pages with warnings read again. Connected to ``build-finished``, last."""
    if exception:
        return
    _find_mark(app).unlink(missing_ok=True)
    for location in app.atlas_warned.locations:
        page = app.env.path2doc(location.partition(":")[0])
        if page not in app.env.found_docs:
            _forget_all(app)
        Path(app.doctreedir, f"{page}.doctree").unlink(missing_ok=True)


def _find_mark(app: Sphinx) -> Path:
    return Path(app.doctreedir).parent / f".unfinished-{Path(app.outdir).name}"


def _forget_all(app: Sphinx) -> None:
    Path(app.doctreedir, ENV_PICKLE_FILENAME).unlink(missing_ok=True)
    Path(app.outdir, ".buildinfo").unlink(missing_ok=True)  # one that is half written would be a warning


def _take_lock(folder: Path) -> TextIO:
    """Wait until no other process builds in ``folder``; none will until the file returned is closed or this process ends.

    The lock belongs to this process alone: nothing that was forked from it, and outlives it, keeps the next build waiting.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / ".lock").open("w", encoding="utf-8")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock(), which a forked process would share
    except (BlockingIOError, PermissionError):
        logger.info("another build of this checkout is running (nox -s serve?): waiting until it has ended")
        fcntl.lockf(file, fcntl.LOCK_EX)
    return file
