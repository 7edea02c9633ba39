"""Data of a version, as ``nox -s versions`` keeps them, for a tiny site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from atlas import toolbox
from atlas.operators import report
from atlas.versions import measured, own_answers
from atlas.versions.measuring import examples, then_and_now
from atlas.versions.probes import all as probes

OWN = own_answers.identity()["torch"]
ROWS = """\
# Then and now

```{testcode} then
import torch
```

### `one`

```{doctest} then
>>> 1 + 1
2
```

### Another

```{doctest} then
>>> torch.__version__
'no'
>>> 1 / 0
1
```
"""
EXAMPLE = '''"""
First
=====

Text.
"""

print("n =", 2)
# %%
# More
try:
    raise RuntimeError("this is how it is said now")
except RuntimeError as error:
    print("RuntimeError:", error)
assert 1 + 1 == 2
'''


def sources(root: Path) -> Path:
    """A folder with an example and rows, of which data can be."""
    for name, text in {"examples/errors/first.py": EXAMPLE, str(then_and_now.PAGE): ROWS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def data(root: Path, torch: str, **changed: Any) -> dict[str, Any]:
    """Data of the sources below ``root`` as they are: all as the build's own version does it, but for what is changed."""
    scripts = examples.scripts(root / "examples").items()
    rows = then_and_now.rows(root / then_and_now.PAGE) if (root / then_and_now.PAGE).exists() else []
    return {
        "of": {"torch": torch, "against": OWN, "python": "3.11.7", "date": "2026-01-31", "format": measured.FORMAT},
        "examples": {
            name: {"code": examples.code_hash(script), "faults": [], "differ": []} for name, script in scripts
        },
        "rows": {row.title: {"code": row.code, "failed": []} for row in rows},
        "operators": {"code": report.identity()["code"], "count": 1, "differ": [], "missing": []},
        "probes": {"kinks": {"x.abs() at x = [0]": "[0]"}},
        **probes.identity(),
        "signatures": {"count": 1, "differ": {}, "missing": [], "gone": []},
        **changed,
    }


def keep(root: Path, *all_data: dict[str, Any]) -> Path:
    """Write data below ``root``, and what the build's own version answers; return the folder."""
    folder = root / measured.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for one in all_data:
        (folder / f"{one['of']['torch']}.json").write_text(json.dumps(one))
    answers = {
        "kinks": {"x.abs() at x = [0]": "[0]", "x.sign() at x = [0]": "[0]"},
        "refuses": {"torch.no()": "no error"},
    }
    own = {"probes": answers, "signatures": {"torch.f": "(x, dim=0)"}}
    toolbox.save_json(root / "docs" / own_answers.DATA, own_answers.identity(), **own)
    return folder
