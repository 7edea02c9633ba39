"""``.ci/run`` ends at the first step that fails, run here with a Python that only takes notes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sources import ROOT

#: Runs ``.ci/run``, with one call that fails: its exit status, what Python was called for, and what it printed.
Run = Callable[..., tuple[int, list[str], str]]

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
def run(tmp_path: Path) -> Run:
    """Run the script in a folder of its own, on a machine that has all it needs."""
    (tmp_path / "checkout" / ".ci").mkdir(parents=True)
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / "checkout" / ".ci")
    for name, text in {"python3": PYTHON, "chromium-headless-shell": "", "nginx": ""}.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)

    def run(failing: str = "") -> tuple[int, list[str], str]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        environment = {
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(calls),
            "FAILING": failing,
        }
        done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, calls.read_text().splitlines(), done.stdout

    return run


def test_a_step_that_fails_is_the_last(run: Run) -> None:
    status, steps, _ = run()
    assert status == 0 and steps.index("-m nox -s docs") < steps.index("-m nox -s tests")  # the site before its tests
    for step in dict.fromkeys(steps[1:]):  # the first makes the environment
        status, called, said = run(step)
        assert status != 0 and called == steps[: steps.index(step) + 1], step
    table = said.partition("  step\n")[2].splitlines()  # how long each took
    assert re.match(rf" *\d+ +\d+  python3 {step}: FAILED$", table[-2]) and table[-1].endswith("  in all")
