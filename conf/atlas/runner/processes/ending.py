"""How processes end: with their parent, by force together with all that they started, and for which reason."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that ends. Does nothing outside of Linux.

    :param parent: the parent's number, taken before the fork: a parent that has ended by now sends no signal.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def running(session: int) -> list[int]:
    """The processes of ``session`` that have not ended. A zombie has ended: only its parent has not waited for it.

    Outside of Linux a session's other process groups are not seen.
    """
    if sys.platform != "linux":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(session, 0)
            return [session]
        return []
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            stat = Path("/proc", pid, "stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # it has ended just now
            continue
        # "PID (NAME) STATE PPID GROUP SESSION …", and the name may hold anything
        state, _, _, of, *_ = stat.rpartition(b")")[2].split()
        if int(of) == session and state not in (b"Z", b"X"):
            found.append(int(pid))
    return found


def kill_session(session: int) -> None:
    """Kill the processes of ``session``."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for pid in running(session):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def reason(code: int) -> str:
    """Why a process ended, from its exit code, which is negative for a signal.

    >>> reason(3), reason(-9), reason(-40)
    ('ended with exit code 3', 'killed by SIGKILL', 'killed by signal 40')
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # real-time signals have no names
        return f"killed by signal {-code}"
