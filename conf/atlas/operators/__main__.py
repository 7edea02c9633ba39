"""``python -m atlas.operators FILE``: probe all operators, and write the result to FILE and, as CSV, beside it."""

from __future__ import annotations

import gc
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from atlas.gallery import sandbox
from atlas.gallery.process import count_cores

from . import report


def main(path: Path) -> int:
    warnings.simplefilter("ignore")  # of deprecated operators, which are probed like all others
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    from .probe import probe, title

    torch.set_num_threads(1)
    operators = [operator for operator in op_db if operator.supports_autograd]

    gc.freeze()  # the children's collections need not walk what they share

    def work(operator: Any) -> dict[str, Any] | None:
        row = probe(operator)
        return asdict(row) if row else None

    answers = sandbox.run(work, operators, at_once=count_cores())
    named = [(title(operator), row, why) for operator, (row, why) in zip(operators, answers, strict=True)]
    rows = [row for _, row, _ in named if row]
    not_probed = {name: why or "no small sample with a derivative" for name, row, why in named if not row}
    rows.sort(key=lambda row: (row["name"].startswith("_"), row["name"].lower()))  # people look for the public ones
    report.save(path, rows, dict(sorted(not_probed.items())))
    print(f"operators: {len(rows)} probed, {len(not_probed)} not")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
