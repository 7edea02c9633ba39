"""``.ci/run`` ends at the first step that fails, run here with a Python that only takes notes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sources import ROOT

#: Runs ``.ci/run``, with one call that fails: its exit status, what Python was called for, and what it printed.
Run = Callable[..., tuple[int, list[str], str]]

#: Notes each call, does what BUSY says where it is to lint, and fails at the one in FAILING. An environment that it makes is
#: empty, so it goes on being found.
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
echo "$*" >> "$CALLS"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && touch "$3/bin/activate" ;;
  "$FAILING") exit 1 ;;
esac
case "$*" in "-m nox -s lint") $BUSY ;; esac
"""
A_SECOND = f"exec {sys.executable} -S -c while(__import__('time').process_time()<1.2):pass"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the script in a folder of its own."""
    (tmp_path / "checkout" / ".ci").mkdir(parents=True)
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / "checkout" / ".ci")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"python3": PYTHON, "chromium-headless-shell": "", "nginx": ""}.items():
        program(programs, name, text)

    def run(failing: str, busy: str = "") -> tuple[int, list[str], str]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "CALLS": str(calls), "FAILING": failing, "BUSY": busy}
        done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, calls.read_text().splitlines(), done.stdout

    return run


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def no_shell(tmp_path: Path, run: Run) -> Path:
    """A machine with a whole Chromium and nothing else but what the script itself needs; apt-get takes notes, and fails."""
    programs = tmp_path / "bin"
    (programs / "chromium-headless-shell").unlink()
    program(programs, "chromium", "")
    program(programs, "apt-get", '#!/bin/sh\necho "apt-get $*" >> "$CALLS"\nexit 1\n')
    program(programs, "sudo", '#!/bin/sh\nexec "$@"\n')
    for name in ("bash", "sh", "env", "id", "dirname", "mktemp", "rm", "awk", "mkdir", "touch"):
        (programs / name).symlink_to(shutil.which(name) or "")
    return programs


def test_with_a_whole_chromium_it_goes_on_where_the_headless_shell_cannot_be_installed(
    run: Run, no_shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(no_shell))
    status, called, said = run("none of them")
    assert status == 0 and "going on with a whole Chromium" in said
    assert called[0] == "apt-get update -qq" and "-m nox -s browser" in called


def test_without_any_chromium_it_ends_where_none_can_be_installed(
    run: Run, no_shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (no_shell / "chromium").unlink()
    monkeypatch.setenv("PATH", str(no_shell))
    status, called, _ = run("none of them")
    assert status != 0 and called == ["apt-get update -qq"]


def test_a_step_that_fails_is_the_last(run: Run) -> None:
    status, steps, _ = run("none of them")
    assert status == 0 and "-m nox -s tests" in steps
    for step in dict.fromkeys(steps[1:]):  # the first makes the environment
        status, called, _ = run(step)
        assert status != 0 and called == steps[: steps.index(step) + 1], step


def test_the_site_is_built_before_its_tests(run: Run) -> None:
    _, steps, _ = run("none of them")
    assert steps.index("-m nox -s docs") < steps.index("-m nox -s tests")


def rows(said: str) -> dict[str, list[str]]:
    """The table at the end: the seconds of each step, on the clock and of CPU time."""
    found = re.findall(r"^ *(\d+) +(\d+)  (.+)$", said.partition("  step\n")[2], flags=re.MULTILINE)
    return {step: [wall, cpu] for wall, cpu, step in found}


def test_it_says_how_long_each_step_took(run: Run) -> None:
    said = run("none of them", A_SECOND)[2]
    table = rows(said)
    assert list(table)[-1] == "in all" and "FAILED" not in said
    assert len(table) == len([line for line in said.splitlines() if line.startswith("== ")]) + 1
    assert int(table["python3 -m nox -s lint"][1]) >= 1  # of CPU time; see A_SECOND
    assert int(table["in all"][1]) >= int(table["python3 -m nox -s lint"][1])
    assert int(table["python3 -m nox -s doctest"][1]) == 0


def test_it_says_so_too_where_a_step_fails(run: Run) -> None:
    _, _, said = run("-m nox -s doctest")
    assert list(rows(said))[-2:] == ["python3 -m nox -s doctest: FAILED", "in all"]
