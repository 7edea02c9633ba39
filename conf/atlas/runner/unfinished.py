"""A build that was killed, or that failed, must not leave pages that the next build takes for its own.

Sphinx decides by time whether a page is current; one that was half written when the power went is newer than its source.
And a warning is given when a page is read, so a second build after one with warnings would be silent. A mark lies beside
the doctrees while a build runs and stays if it does not succeed; a build that finds one starts from the sources.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _mark(app: Sphinx) -> Path:
    return Path(app.doctreedir).parent / f".unfinished-{Path(app.outdir).name}"


def begin(app: Sphinx, config: Config) -> None:
    """Throw away what an unfinished build left, and set the mark. Connected to ``config-inited``."""
    mark = _mark(app)
    if mark.exists():
        logger.info("the last build did not succeed: starting from the sources")
        for folder in (app.outdir, app.doctreedir):
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).mkdir(parents=True)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Take the mark away after a build without a fault. Connected to ``build-finished``, last."""
    if exception is None and app._warncount == 0 and app.statuscode == 0:
        _mark(app).unlink(missing_ok=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", begin, priority=1)
    app.connect("build-finished", finish, priority=999)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
