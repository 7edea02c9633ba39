"""``.ci/run`` ends at the first step that fails, run here with a Python that only takes notes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sources import ROOT

#: Notes each call, and fails at the one in FAILING. An environment that it makes is empty, so it goes on being found.
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
echo "$*" >> "$CALLS"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && touch "$3/bin/activate" ;;
  "$FAILING") exit 1 ;;
esac
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], tuple[int, list[str]]]:
    """Run the script, with one call that fails: its exit status, and what Python was called for."""
    (tmp_path / "checkout" / ".ci").mkdir(parents=True)
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / "checkout" / ".ci")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"python3": PYTHON, "chromium": "", "nginx": ""}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def run(failing: str) -> tuple[int, list[str]]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "CALLS": str(calls), "FAILING": failing}
        done = subprocess.run([script], env=environment, capture_output=True, check=False)
        return done.returncode, calls.read_text().splitlines()

    return run


def test_a_step_that_fails_is_the_last(run: Callable[[str], tuple[int, list[str]]]) -> None:
    status, steps = run("none of them")
    assert status == 0 and "-m nox -s tests" in steps
    for number, step in enumerate(steps[1:], start=2):  # the first makes the environment
        status, called = run(step)
        assert status != 0 and called == steps[:number], step
