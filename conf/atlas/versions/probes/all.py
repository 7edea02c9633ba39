"""All probes, and their answers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from atlas.gallery import sandbox
from atlas.gallery.process import count_cores

from . import ask, kinks, nodes, refuses, warns
from .ask import Probe

LISTED = (kinks, nodes, warns, refuses)


def probes() -> list[Probe]:
    """All that are listed, subject by subject."""
    return [probe for module in LISTED for probe in module.PROBES]


def answers() -> dict[str, dict[str, str]]:
    """What the PyTorch that is here answers: for each subject the keys of its probes, with the answers."""
    import torch  # before the processes are forked, so that they need not

    torch.set_num_threads(1)
    found: dict[str, dict[str, str]] = {}
    for module in LISTED:
        # some warnings are given once in a process; a process for each of the others would take ten times as long
        answered = sandbox.run(
            ask.answer, module.PROBES, at_once=count_cores(), time_limit=ask.TIME_LIMIT, apart=module is warns
        )
        for probe, (answer, why) in zip(module.PROBES, answered, strict=True):
            found.setdefault(probe.subject, {})[probe.key] = why if answer is None else answer
    return found


def identity() -> dict[str, Any]:
    """What answers depend on besides the code of their probes: how they are asked."""
    return {"asked_by": hashlib.sha256(Path(ask.__file__).read_bytes()).hexdigest()[:16]}
