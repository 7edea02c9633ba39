"""How much of the machine one example may take, and how it asks for more time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from atlas.runner import sphinx_gallery_api

_OPTION = "time_limit"
_WALL_CLOCK = 5  # times the CPU time: an example may also wait for the disk, or for processes that it has started


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the machine one example may take."""

    seconds: float = 60.0
    """CPU time that its process may take. It does not depend on what else the machine does."""
    output: int = 1_000_000
    """Characters that it may print, in all cells together."""
    memory: int = 6 * 2**30
    """Bytes that it may allocate on top of what the build has."""

    @property
    def wall_clock(self) -> float:
        """Seconds until an example is ended that does not compute: one that sleeps, or waits for what never comes.

        Time in which it waits for a core is not counted.
        """
        return _WALL_CLOCK * self.seconds


def allowed(script: Path, usual: Limits) -> Limits:
    """The usual limits, with more time if the script asks for more.

    An invalid time limit is ignored here; ``check_time_limit`` reports it when the script runs.
    """
    asked = sphinx_gallery_api.option(script, _OPTION)
    return replace(usual, seconds=max(usual.seconds, asked[1])) if asked and _is_time(asked[1]) else usual


def check_time_limit(script: Path) -> None:
    """See that a script that asks for time says how much.

    :raises ValueError: if it does not; the message names file and line.
    """
    asked = sphinx_gallery_api.option(script, _OPTION)
    if asked and not _is_time(asked[1]):
        raise ValueError(
            f"{script}:{asked[0]}: {asked[1]!r} is no time limit; write a positive number of seconds, such as 120"
        )


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
