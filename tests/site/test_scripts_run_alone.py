"""Each example runs with plain Python in an empty folder, as it does for a reader who downloads it, and leaves no file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT = 60


def fault(script: Path, folder: Path) -> str | None:
    """Run a script in an empty folder. Say what went wrong, if anything did."""
    command = [sys.executable, "-P", str(script)]  # -P: the script's own folder is not importable
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment | {"MPLBACKEND": "agg"},
            timeout=TIMEOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"still running after {TIMEOUT} s"
    if done.returncode:
        return f"ended with {done.returncode}:\n{done.stdout}"
    left = sorted(path.name for path in folder.iterdir())
    return f"left files behind: {left}" if left else None


def test_the_script_runs_alone(root: Path, script: str, tmp_path: Path) -> None:
    if script.startswith("cuda/") and not Path("/dev/nvidiactl").exists():
        pytest.skip("needs a GPU")
    assert fault(root / "examples" / script, tmp_path) is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("assert False, 'wrong'", "AssertionError: wrong"),
        ("import neighbour", "No module named 'neighbour'"),
        ("open('left.txt', 'w').close()", "left files behind: ['left.txt']"),
    ],
)
def test_a_script_that_does_not_is_found(tmp_path: Path, code: str, said: str) -> None:
    script, empty = tmp_path / "script.py", tmp_path / "empty"
    script.write_text(code)
    (tmp_path / "neighbour.py").write_text("")
    empty.mkdir()
    assert said in (fault(script, empty) or "")
