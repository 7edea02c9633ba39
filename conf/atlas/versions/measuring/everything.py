"""Measure the PyTorch that is here, with the sources of the site.

``python -m atlas.versions.measuring ROOT PLAN FILE`` calls this in the environment of each version.
"""

from __future__ import annotations

import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from . import examples, then_and_now


def measure(root: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """Measure what is asked for.

    :param root: the folder that holds docs/ and examples/.
    :param plan: ``examples`` and ``rows``: names and titles; ``operators`` and ``probes``: whether.
    """
    import torch

    torch.set_num_threads(1)
    began = time.monotonic()
    scripts = examples.scripts(root / "examples")
    rows = {row.title: row for row in then_and_now.rows(root / then_and_now.PAGE)}
    found: dict[str, Any] = {
        "torch": torch.__version__.partition("+")[0],
        "python": platform.python_version(),
        "examples": examples.measure({name: scripts[name] for name in plan["examples"]}),
        "rows": then_and_now.measure([rows[title] for title in plan["rows"]]),
    }
    if plan["probes"]:
        found |= _probes()
    if plan["operators"]:
        found["operators"] = _operators()
    return {**found, "seconds": round(time.monotonic() - began)}


def _probes() -> dict[str, Any]:
    from atlas.versions.probes import all as probes
    from atlas.versions.probes import signatures

    return {"probes": probes.answers(), "signatures": signatures.found()}


def _operators() -> dict[str, Any]:
    """What the probe of the operators finds; ``failed`` if this version cannot be probed at all."""
    from atlas.operators import probing, report

    with tempfile.TemporaryDirectory() as folder:
        try:
            probing.probe(Path(folder))
        except RuntimeError as error:
            return {"failed": str(error).strip().splitlines()[-1], "rows": [], **report.identity()}
        found = report.load(Path(folder) / probing.DATA)
    return {"rows": found["rows"], "not_probed": found["not_probed"], **report.identity()}
