"""The date that a build names: never the clock's, for two builds of the same sources must be the same.

It is that of ``SOURCE_DATE_EPOCH`` (https://reproducible-builds.org/specs/source-date-epoch/), or else of the commit, if
nothing has been changed since. Sources that are no commit have no date.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from atlas.toolbox import Refusal

#: What a site is made from, in the repository.
SOURCES = ("conf", "docs", "examples", "requirements.txt")


def date_of(root: Path) -> str | None:
    """The day, in UTC, of the sources in ``root``; None where it is not known.

    :raises Refusal: if ``SOURCE_DATE_EPOCH`` is no number of seconds.
    """
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        seconds = int(said) if said else _of_commit(root)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise Refusal(f"SOURCE_DATE_EPOCH is {said!r}, which is no number of seconds since 1970; unset it") from None


def _of_commit(root: Path) -> int | None:
    """The seconds of the commit that is checked out in ``root``: of that folder alone, not of a repository around it."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve() or _git(root, "status", "--porcelain", "--", *SOURCES) != "":
        return None
    seconds = _git(root, "log", "-1", "--format=%ct")
    return int(seconds) if seconds else None


def _git(root: Path, *command: str) -> str | None:
    """What git says; None if it is not installed, or fails."""
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # builds in one checkout may ask at once
    try:
        done = subprocess.run(
            ["git", *command], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
