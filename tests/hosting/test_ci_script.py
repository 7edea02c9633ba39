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
        write_program(tmp_path / "bin" / name, text)

    def run(failing: str = "", path: str = f"{os.pathsep}{os.environ['PATH']}") -> tuple[int, list[str], str]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        environment = {"PATH": f"{tmp_path / 'bin'}{path}", "CALLS": str(calls), "FAILING": failing}
        done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, calls.read_text().splitlines(), done.stdout

    return run


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("has_chromium", [True, False])
def test_where_the_headless_shell_cannot_be_installed(run: Run, tmp_path: Path, has_chromium: bool) -> None:
    """A whole Chromium does, without one it ends."""
    (tmp_path / "bin" / "chromium-headless-shell").unlink()
    write_program(tmp_path / "bin" / "apt-get", '#!/bin/sh\necho "apt-get $*" >> "$CALLS"\nexit 1\n')
    write_program(tmp_path / "bin" / "sudo", '#!/bin/sh\nexec "$@"\n')
    if has_chromium:
        write_program(tmp_path / "bin" / "chromium", "")
    for name in ("bash", "sh", "env", "id", "dirname", "mktemp", "rm", "awk", "mkdir", "touch"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    status, called, said = run(path="")
    assert called[0] == "apt-get update -qq" and (status == 0) == has_chromium
    assert ("-m nox -s browser" in called) == ("going on with a whole Chromium" in said) == has_chromium
    assert has_chromium or len(called) == 1


def test_a_step_that_fails_is_the_last(run: Run) -> None:
    status, steps, _ = run()
    assert status == 0 and steps.index("-m nox -s docs") < steps.index("-m nox -s tests")  # the site before its tests
    for step in dict.fromkeys(steps[1:]):  # the first makes the environment
        status, called, said = run(step)
        assert status != 0 and called == steps[: steps.index(step) + 1], step
    table = said.partition("  step\n")[2].splitlines()  # how long each took
    assert re.match(rf" *\d+ +\d+  python3 {step}: FAILED$", table[-2]) and table[-1].endswith("  in all")
