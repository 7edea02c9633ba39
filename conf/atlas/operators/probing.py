"""Have the operators measured before pages are read, and read the result."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from atlas import toolbox
from atlas.gallery.process import count_cores

PROGRAM = Path(__file__).parents[2] / "measure" / "operators.py"
DATA = Path("reference/data/operators.json")
"""Where the result is, below docs/, so that its page can link to it."""


def identify_result() -> dict[str, Any]:
    """What the result depends on: the version of PyTorch, and the program with what it imports from beside it."""
    code = hashlib.sha256()
    used = {PROGRAM.stem, *toolbox.read_imports(ast.parse(PROGRAM.read_text(encoding="utf-8")))}
    for file in sorted(PROGRAM.parent.glob("*.py")):
        if file.stem in used:
            code.update(file.read_bytes())
    return {"torch": version("torch").partition("+")[0], "code": code.hexdigest()[:16]}


def read_operators(docs: Path) -> dict[str, Any] | None:
    """The result: ``of``, ``rows``, ``not_probed``; None if missing, broken, or of another PyTorch or program."""
    return toolbox.load_json(docs / DATA, identify_result())


def probe_operators(docs: Path) -> str:
    """Run the program, and return a sentence that says how many operators were probed.

    No clock ends it: the program itself ends each operator that hangs.

    :raises RuntimeError: if it fails as a whole. A single operator that fails is listed in the result.
    """
    command = [sys.executable, str(PROGRAM), str(docs / DATA), "--of", json.dumps(identify_result())]
    # packages may have come onto the path by other ways than the environment of this Python
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [*command, "--jobs", str(count_cores())], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode or read_operators(docs) is None:
        raise RuntimeError(
            f"the operators could not be probed; `{' '.join(command[1:3])}` says:\n{done.stderr[-2000:]}"
        )
    return done.stdout.strip()
