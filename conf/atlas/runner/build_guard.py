"""What one build owes to the next. If a build was killed, the next starts from scratch; if one ended with warnings, the next
repeats them.

Sphinx decides by time whether a page is current. A page that was half written when the power went is newer than its source,
and would stay. So a file, the mark, lies beside the doctrees from when Sphinx begins to read until all that it wrote is on the
disk. A build that finds an empty mark reads all sources again, and with that writes all pages again. It removes nothing from
the output folder, in which others may keep files.

Sphinx warns of a page when it reads or writes it, so a second build would be silent, and end well. When a build ends by itself,
its mark lists the pages that it warned of, and the next build reads these again.

Each builder has a mark and heeds the marks of all, because all share the doctrees. Only the build that holds the lock looks at
marks. A build with ``-E -a``, as for a release or in CI, reads and writes everything anyway; this module serves an author, who
builds again and again.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import NAMESPACE, WarningStreamHandler, getLogger

from atlas.toolbox import write_whole

from . import lock

logger = getLogger(__name__)

_MARK = ".unfinished-"


class Course(logging.Filter):
    """One build from its begin to its end: its lock, its mark, and the pages that it warned of."""

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
        """Wait for other builds. After a killed one, have Sphinx read all again. Connected to ``config-inited``."""
        self.lock = lock.take(self.mark.parent)  # until this process ends
        broken_off = [mark for mark, said in self.marks().items() if not said]
        if broken_off:
            logger.info("the last build was broken off: starting from the sources")
            Path(app.doctreedir, ENV_PICKLE_FILENAME).unlink(missing_ok=True)
            for mark in broken_off:
                mark.unlink()
        for handler in logging.getLogger(NAMESPACE).handlers:
            if isinstance(handler, WarningStreamHandler):
                handler.addFilter(self)

    def read(self, app: Sphinx, env: BuildEnvironment, *files: set[str]) -> Iterable[str]:
        """Set the mark, and return the pages that the last builds warned of. Connected to ``env-get-outdated``."""
        warned = {page for said in self.marks().values() for page in json.loads(said)}
        self.mark.write_text("", encoding="utf-8")
        # Sphinx has read it by now, and writes it again at the end. A half-written one would end the next build.
        Path(app.outdir, ".buildinfo").unlink(missing_ok=True)
        self.locations.clear()  # every build gives the warnings that come before this moment
        return warned

    def filter(self, record: logging.LogRecord) -> bool:
        """Note the place of a warning when it is shown. It is shown in any case."""
        if getattr(record, "type", None) != "atlas":  # a failed example runs again, and its error is logged again
            self.locations.add(None if getattr(record, "once", False) else getattr(record, "location", None))
        return True

    def finish(self, app: Sphinx, exception: Exception | None) -> None:
        """Remove the mark, or list in it the pages to read again. Connected to ``build-finished``, last."""
        paths = {location and re.sub(r":\d*$", "", location) for location in self.locations}
        warned = {path and app.env.path2doc(path) for path in paths}
        os.sync()  # a loss of power after this finds the pages on the disk
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
