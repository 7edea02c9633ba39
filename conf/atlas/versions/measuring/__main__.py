"""``python -m atlas.versions.measuring ROOT PLAN FILE``: measure the PyTorch that is here as the plan says, and write FILE."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from . import everything

#: What examples import, once for all the processes that are forked from this one.
IMPORTED = ("matplotlib.pyplot", "numpy", "pandas", "torch")


def main(root: Path, plan: Path, file: Path) -> int:
    for name in IMPORTED:
        importlib.import_module(name)
    file.write_text(json.dumps(everything.measure(root, json.loads(plan.read_text()))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
