"""An example runs with ``python`` in an empty folder, as it does for a reader who downloads it, and leaves no file.

The build shows most of this for every example: it runs each in a process and a folder of its own, and refuses what leaves a
file there. What it cannot show is that a script needs nothing of the site, which its imports tell, and that it runs as one
program: so each that starts processes is run by ``python`` itself.

One that needs a GPU ends by itself where it does, on a machine without one.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

import pytest

import warm_python
from atlas.toolbox import read_imports
from sources import ROOT, sources_of_examples

CPU = 60  # seconds; on the clock it may be ten times that, for the machine may have other work

#: Code that starts processes: they import the script again, or inherit what a build has read_imports.
STARTS_PROCESSES = re.compile(r"\bmultiprocessing\b|\bsubprocess\b|__main__|\bnum_workers=[1-9]")


def run_as_programs() -> list[str]:
    return [script for script in sources_of_examples() if starts_processes(script)]


def starts_processes(script: str) -> bool:
    return STARTS_PROCESSES.search((ROOT / "examples" / script).read_text(encoding="utf-8")) is not None


def of_this_site(code: str) -> set[str]:
    """The modules that the code imports and only a checkout of the site has; ``.`` for those beside it."""
    own = {path.stem for folder in ("conf", "examples", "examples/*", "tests") for path in ROOT.glob(f"{folder}/*")}
    return read_imports(ast.parse(code)) & (own - sys.stdlib_module_names | {"."})


def fault(script: Path, folder: Path, *, real: bool, cpu: int = CPU, wall: float = 10 * CPU) -> str | None:
    """Run a script in an empty folder. Say what went wrong, if anything did."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"MPLBACKEND": "agg", **warm_python.PATIENT}
    try:  # -P: the script's own folder is not importable
        done = warm_python.run_python(["-P", str(script)], cwd=folder, env=environment, wall=wall, cpu=cpu, real=real)
    except TimeoutError as error:
        return str(error)
    if done.code:
        return f"ended with {done.code}:\n{done.output}"
    left = sorted(path.name for path in folder.iterdir())
    return f"left files behind: {left}" if left else None


@pytest.mark.parametrize("example", run_as_programs())
def test_the_script_runs_alone(example: str, tmp_path: Path) -> None:
    assert fault(ROOT / "examples" / example, tmp_path, real=True) is None


def test_the_script_imports_nothing_of_this_site(script: str) -> None:
    assert of_this_site((ROOT / "examples" / script).read_text(encoding="utf-8")) == set()


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
