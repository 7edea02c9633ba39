"""How many cores there are for this process, how many processes use them, and how long one has waited for a core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cores() -> int:
    """How many cores this process may use: those that it may run on, or fewer if a container has a quota; at least 1."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([here, *_quotas()])))


def sphinx_jobs() -> int:
    """How many processes read and write pages: one more than cores, as one hands pages out while they are written.

    >>> sphinx_jobs() - cores()
    1
    """
    return cores() + 1


def waited_for_core(pid: int) -> float:
    """How many seconds the main thread of process ``pid`` could have run but had no core; 0 where that is not known.

    From ``/proc/PID/schedstat``: https://docs.kernel.org/scheduler/sched-stats.html.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _quotas() -> Iterator[float]:
    """How many cores' time each of the control groups allows that this process is in.

    Version 2: https://docs.kernel.org/admin-guide/cgroup-v2.html, ``cpu.max``.
    Version 1: https://docs.kernel.org/scheduler/sched-bwc.html, ``cpu.cfs_quota_us``.
    """
    try:
        memberships = _OWN.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # A container may see only its own group, as the top, while the path is that of the host
        for top in {_GROUPS / controllers, _GROUPS / "cpu"} if controllers else [_GROUPS]:
            group = top / path.strip("/")
            for folder in (group, *group.parents[: len(group.parts) - len(top.parts)]):
                yield from _quota(folder)


def _quota(group: Path) -> Iterator[float]:
    for files in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((group / file).read_text() for file in files).split()
        except OSError:
            continue
        if quota not in ("max", "-1"):
            yield int(quota) / int(period)
