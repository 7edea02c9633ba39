"""``python -m atlas.versions.probes FILE``: what the PyTorch that is here answers, kept in FILE."""

from __future__ import annotations

import sys
from pathlib import Path

from atlas import toolbox
from atlas.versions import own_answers

from . import all as probes
from . import signatures

if __name__ == "__main__":
    toolbox.save_json(
        Path(sys.argv[1]), own_answers.identity(), probes=probes.answers(), signatures=signatures.found()
    )
