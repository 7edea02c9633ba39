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


def starts_processes(script: str) -> bool:
    return STARTS_PROCESSES.search((ROOT / "examples" / script).read_text(encoding="utf-8")) is not None


def of_this_site(code: str) -> set[str]:
    """The modules that the code imports and only a checkout of the site has; ``.`` for those beside it."""
    own = {path.stem for folder in ("conf", "examples", "examples/*", "tests") for path in ROOT.glob(f"{folder}/*")}
    return read_imports(ast.parse(code)) & (own - sys.stdlib_module_names | {"."})


@pytest.mark.parametrize("example", [*filter(starts_processes, sources_of_examples())])
def test_the_script_runs_alone(example: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"MPLBACKEND": "agg", **warm_python.PATIENT}
    command = ["-P", str(ROOT / "examples" / example)]  # -P: the script's own folder is not importable
    done = warm_python.run_python(command, cwd=tmp_path, env=environment, wall=10 * CPU, cpu=CPU, real=True)
    assert done.code == 0, done.output
    assert not [*tmp_path.iterdir()]


def test_the_script_imports_nothing_of_this_site(script: str) -> None:
    assert of_this_site((ROOT / "examples" / script).read_text(encoding="utf-8")) == set()
