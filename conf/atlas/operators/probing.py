"""Bring the result of the probes up to date, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import report

CONF = Path(__file__).parents[2]
DATA = Path("reference/data/operators.json")
"""Where the result is, below docs/, so that its page can link to it."""
SECONDS = 50.0
"""About how long all probes take, on two cores."""
TIME_LIMIT = 20 * SECONDS
"""Enough for a machine with a load of ten times its cores."""


def needed(docs: Path) -> bool:
    """Whether the site has a page of operators, and no result for this PyTorch and this code."""
    return (docs / "reference" / "operators.md").exists() and report.load(docs / DATA) is None


def probe(docs: Path) -> str:
    """Probe all operators, and return a sentence that says how many.

    :raises RuntimeError: if the probe fails as a whole, or takes longer than ``TIME_LIMIT``. A single operator that fails is
        listed in the result.
    """
    path = docs / DATA
    environment = {**os.environ, "PYTHONPATH": str(CONF), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "atlas.operators", str(path)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"the operators could not be probed within {TIME_LIMIT:g} s; see where `{' '.join(command[1:])}` hangs"
        ) from None
    if done.returncode or report.load(path) is None:
        raise RuntimeError(
            f"the operators could not be probed; `{' '.join(command[1:])}` says:\n{done.stderr[-2000:]}"
        )
    return done.stdout.strip()
