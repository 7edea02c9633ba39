"""The result of all probes: a JSON file that says which PyTorch and which code it is of, and a CSV file for other tools."""

from __future__ import annotations

import csv
import hashlib
import io
from importlib.metadata import version
from pathlib import Path
from typing import Any

from atlas import toolbox

#: Outcomes of a change in place, from good to bad; of several samples the worst counts. ``refused``: the change itself
#: raises. ``raises``: backward does. ``wrong``: neither, and a gradient is wrong.
OUTCOMES = ("works", "refused", "raises", "wrong")


def identity() -> dict[str, Any]:
    """What a result depends on: the version of PyTorch, and the code that probes. What only shows the result does not count."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.endswith("_directive"):
            code.update(path.read_bytes())
    return {"torch": version("torch").partition("+")[0], "code": code.hexdigest()[:16]}


def load(path: Path) -> dict[str, Any] | None:
    """The result at ``path``: ``of`` (its identity), ``rows``, ``not_probed``; None if missing, broken or out of date."""
    return toolbox.load_json(path, identity())


def save(path: Path, rows: list[dict[str, Any]], not_probed: dict[str, str]) -> None:
    """Write the result, whole or not at all, and the rows as CSV beside it."""
    toolbox.save_json(path, identity(), rows=rows, not_probed=not_probed)
    toolbox.write_whole(path.with_suffix(".csv"), _as_csv(rows))


def _as_csv(rows: list[dict[str, Any]]) -> str:
    """The rows with lists joined by spaces, and notes by semicolons.

    >>> row = {"name": "exp", "saves": ["output"], "error": None, "notes": {"second": "if 1-d", "forward": "if 2-d"}}
    >>> print(_as_csv([row]).replace("\\r", ""), end="")
    name,saves,error,notes
    exp,output,,second: if 1-d; forward: if 2-d
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _as_cell(value) for key, value in row.items()})
    return text.getvalue()


def _as_cell(value: Any) -> Any:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {note}" for name, note in value.items())
    return " ".join(value) if isinstance(value, list) else value
