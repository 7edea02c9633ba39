"""Whether a build has nothing to do: what it would read and what the last one wrote are as they were.

Sphinx finds that out too, but only after it has imported itself and looked through the environment, which takes some seconds.
Here, as in make, a file counts as unchanged by its size and its time. The time is that of the inode (``st_ctime``), which no
program sets back.

``nox -s docs`` asks, before it starts Sphinx. It asks only where it is called without options, and not in CI.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from atlas import toolbox
from atlas.build_facts import SOURCES, find_date
from atlas.gallery.scripts import may_have_gpu

#: What a build writes besides the site: these lie among the sources, and git does not know them.
GENERATED = ("docs/gallery", "docs/reference/data")
#: The variables that a build heeds; ``SOURCE_DATE_EPOCH`` is in the date.
SETTINGS = ("ATLAS_COMMIT", "ATLAS_REPOSITORY", "ATLAS_SITE")


class LastBuild:
    """What the last build read and wrote.

    :param root: the repository.
    :param out: the folder of the site.
    :param also: other files that a build depends on.
    """

    def __init__(self, root: Path, out: Path, also: tuple[Path, ...] = ()) -> None:
        self.root, self.out, self.also = root, out, also
        self._generated = [root / folder for folder in GENERATED]
        self._file = root / "build" / "last_build.json"

    def read(self) -> str:
        """A checksum of all that a build would read now. Take it before the build: a source may be saved while it runs."""
        files = _files([*(self.root / name for name in SOURCES), *self.also], leave_out=self._generated)
        settings = [os.environ.get(name) for name in SETTINGS]
        return _checksum(sys.version, settings, find_date(self.root), may_have_gpu(), *files)

    def keep(self, read: str) -> None:
        """Keep what a build has read that has just ended well, and what it wrote."""
        toolbox.save_json(self._file, {"read": read, "written": self._written()})

    def is_current(self, read: str) -> bool:
        """Whether a build would read ``read`` again, and would find all that it wrote."""
        return toolbox.load_json(self._file, {"read": read, "written": self._written()}) is not None

    def _written(self) -> str:
        return _checksum(*_files([self.out, *self._generated]))


def _files(places: Iterable[Path], leave_out: Sequence[Path] = ()) -> Iterator[tuple[str, int, int]]:
    """The path, the size and the time of each file, in an order that is always the same."""
    for place in places:
        if place.is_dir():
            inside = (path for path in place.iterdir() if path.name != "__pycache__" and path not in leave_out)
            yield from _files(sorted(inside), leave_out)
        elif place.exists():
            found = place.stat()
            yield str(place), found.st_size, found.st_ctime_ns


def _checksum(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
