"""Whether a build has nothing to do: what it would read, and what the last one wrote, are as they were.

Sphinx finds that out too, but only after it has imported itself and looked through the environment, which takes some seconds.
As for make, a file is unchanged if its size and its time are. The time is that of the inode, which no program sets back.
``nox -s docs`` asks before it starts Sphinx, where it is called without options and not in CI.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from atlas import toolbox
from atlas.gallery.scripts import may_have_gpu

ROOT = Path(__file__).parents[1]
#: What a build reads.
SOURCES = ("conf", "docs", "examples", "requirements.txt", "noxfile.py")
#: What else changes pages: a commit, whose date they name, and an environment installed anew.
ALSO = (".git/logs/HEAD", f".nox/{os.environ.get('ATLAS_TORCH') or 'site'}/requirements.sha256")
#: What a build writes besides the site: these lie among the sources, and git does not know them.
GENERATED = ("docs/gallery", "docs/reference/data")
#: The variables that a build heeds.
SETTINGS = ("ATLAS_COMMIT", "ATLAS_REPOSITORY", "ATLAS_SITE", "ATLAS_TORCH", "SOURCE_DATE_EPOCH")


def read_sources(root: Path = ROOT) -> str:
    """A checksum of all that a build would read now. Take it before the build: a source may be saved while it runs."""
    generated = {root / name for name in GENERATED}
    files = [found for name in (*SOURCES, *ALSO) for found in _list_files(root / name, leave_out=generated)]
    return _make_checksum(sys.version, [os.environ.get(name) for name in SETTINGS], may_have_gpu(), files)


def keep_build(sources: str, root: Path = ROOT) -> None:
    """Keep what a build has read that has just ended well, and what it wrote."""
    toolbox.save_json(root / "build" / "last_build.json", {"read": sources, "written": _read_outputs(root)})


def is_current(sources: str, root: Path = ROOT) -> bool:
    """Whether a build would read ``sources`` again, and would find all that it wrote."""
    last = {"read": sources, "written": _read_outputs(root)}
    return toolbox.load_json(root / "build" / "last_build.json", last) is not None


def _read_outputs(root: Path) -> str:
    return _make_checksum([found for name in ("build/html", *GENERATED) for found in _list_files(root / name)])


def _list_files(place: Path, leave_out: set[Path] = frozenset()) -> Iterator[tuple[str, int, int]]:
    """The path, the size and the time of each file, in an order that is always the same."""
    if place.is_dir():
        for path in sorted(place.iterdir()):
            if path.name != "__pycache__" and path not in leave_out:
                yield from _list_files(path, leave_out)
    elif place.exists():
        found = place.stat()
        yield str(place), found.st_size, found.st_ctime_ns


def _make_checksum(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
