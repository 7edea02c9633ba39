"""Each example runs with Python in an empty folder, as it does for a reader who downloads it, and leaves no file.

One that needs a GPU ends by itself where it does, on a machine without one.

To import PyTorch takes longer than most examples. So of each chapter the first is run by ``python`` itself, and the others in
processes forked from one that has imported it. With ``--new-python`` each is run by ``python`` itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import warm_python
from sources import sources_of_examples

CPU = 60  # seconds; on the clock it may be ten times that, for the machine may have other work


def first_of_their_chapters() -> set[str]:
    """One script of each chapter."""
    return set({script.partition("/")[0]: script for script in reversed(sources_of_examples())}.values())


def fault(script: Path, folder: Path, *, real: bool, cpu: int = CPU, wall: float = 10 * CPU) -> str | None:
    """Run a script in an empty folder. Say what went wrong, if anything did."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"MPLBACKEND": "agg", **warm_python.PATIENT}
    try:  # -P: the script's own folder is not importable
        done = warm_python.run(["-P", str(script)], cwd=folder, env=environment, wall=wall, cpu=cpu, real=real)
    except TimeoutError as error:
        return str(error)
    if done.code:
        return f"ended with {done.code}:\n{done.output}"
    left = sorted(path.name for path in folder.iterdir())
    return f"left files behind: {left}" if left else None


def test_the_script_runs_alone(root: Path, script: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    real = request.config.getoption("--new-python") or script in first_of_their_chapters()
    assert fault(root / "examples" / script, tmp_path, real=real) is None


@pytest.mark.parametrize("real", [False, True], ids=["forked", "new"])
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("assert False, 'wrong'", "AssertionError: wrong"),
        ("import neighbour", "No module named 'neighbour'"),
        ("open('left.txt', 'w').close()", "left files behind: ['left.txt']"),
        ("while True: pass", "ended with -24"),  # SIGXCPU
        ("import time; time.sleep(100)", "not ended after 5 s"),
    ],
)
def test_a_script_that_does_not_is_found(tmp_path: Path, code: str, said: str, real: bool) -> None:
    script, empty = tmp_path / "script.py", tmp_path / "empty"
    script.write_text(code)
    (tmp_path / "neighbour.py").write_text("")
    empty.mkdir()
    wall = 5 if "sleep" in code else 600
    assert said in (fault(script, empty, real=real, cpu=1, wall=wall) or "")
