"""A build that was killed must not leave pages that the next one takes for its own, nor one with warnings a silent next one.

Sphinx decides by time whether a page is current; one that was half written when the power went is newer than its source. So a
mark lies beside the doctrees from when Sphinx begins to read until its build has ended, and a build that finds it starts
from the sources. And a warning is given when a page is read or written: of a build that ended by itself the mark keeps which
pages were warned of, and the next build reads these again. Each builder has a mark and heeds those of all, since they share the
doctrees. Marks are only looked at by who holds the lock of all builds.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import NAMESPACE, WarningStreamHandler, getLogger

from . import lock
from .outputs.cache import write_whole

logger = getLogger(__name__)

_MARK = ".unfinished-"


class Course(logging.Filter):
    """The course of one build: its lock, its mark, and what it warns of."""

    def __init__(self, app: Sphinx) -> None:
        super().__init__()
        self.app = app
        self.locations: set[str | None] = set()

    @property
    def mark(self) -> Path:
        return Path(self.app.doctreedir).parent / f"{_MARK}{Path(self.app.outdir).name}"

    def marks(self) -> dict[Path, str]:
        """What the marks of all builders say."""
        return {mark: mark.read_text(encoding="utf-8") for mark in sorted(self.mark.parent.glob(f"{_MARK}*"))}

    def begin(self, app: Sphinx, config: Config) -> None:
        """Wait for other builds, and throw away what a killed one left. Connected to ``config-inited``."""
        self.lock = lock.take(self.mark.parent)  # until this process ends
        broken_off = [mark for mark, said in self.marks().items() if not said]
        if broken_off:
            logger.info("the last build was broken off: starting from the sources")
            for folder in (app.outdir, app.doctreedir):
                shutil.rmtree(folder, ignore_errors=True)
                Path(folder).mkdir(parents=True)
            for mark in broken_off:
                mark.unlink()
        for handler in logging.getLogger(NAMESPACE).handlers:
            if isinstance(handler, WarningStreamHandler):
                handler.addFilter(self)

    def read(self, app: Sphinx, env: BuildEnvironment, *files: set[str]) -> Iterable[str]:
        """Set the mark, and return the pages that the last builds warned of. Connected to ``env-get-outdated``."""
        warned = {page for said in self.marks().values() for page in json.loads(said)}
        self.mark.write_text("", encoding="utf-8")
        self.locations.clear()  # what was warned of until here is so in every build
        return warned

    def filter(self, record: logging.LogRecord) -> bool:
        """Note where a warning is, as it is shown."""
        if getattr(record, "type", None) != "atlas":  # what failed runs again, and is said again
            self.locations.add(None if getattr(record, "once", False) else getattr(record, "location", None))
        return True

    def finish(self, app: Sphinx, exception: Exception | None) -> None:
        """Take the mark away, or note in it what to read again. Connected to ``build-finished``, last."""
        paths = {location and re.sub(r":\d*$", "", location) for location in self.locations}
        warned = {path and app.env.path2doc(path) for path in paths}
        if exception or not warned <= app.env.found_docs:
            self.mark.write_text("", encoding="utf-8")
        elif warned:
            write_whole(self.mark, json.dumps(sorted(warned)))
        else:
            self.mark.unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    course = Course(app)
    app.connect("config-inited", course.begin, priority=1)
    app.connect("env-get-outdated", course.read)
    app.connect("build-finished", course.finish, priority=999)
