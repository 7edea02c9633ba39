"""A process ends with its parent, even if the parent ended before it could ask for that."""

from __future__ import annotations

import os
import sys

import pytest

from atlas.runner.processes import ending

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")


def _exit_code(parent: int) -> int:
    """The exit code of a process that says that ``parent`` is its parent, and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            ending.with_parent(parent)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_process_goes_on_while_its_parent_does() -> None:
    assert _exit_code(os.getpid()) == 0


def test_a_process_whose_parent_has_ended_already_is_killed() -> None:
    """It belongs to another process by then, which sends no signal when it ends."""
    assert ending.reason(_exit_code(os.getppid())) == "killed by SIGKILL"
