"""What was measured of other versions of PyTorch: a JSON file for each in docs/reference/versions, kept in the repository.

Like a recording, it says of which sources it is. What was measured of other sources is stale: it is named, and not shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas import toolbox

from .measuring import examples, then_and_now
from .measuring.environment import parts
from .probes import all as probes

FOLDER = Path("docs/reference/versions")
"""Below the root of the sources."""
FORMAT = 1


class DataError(ValueError):
    """A file of data that cannot be used; the message names it and says the way out."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One version, compared with the build's own."""

    file: Path
    of: dict[str, Any]
    """``torch``, ``against`` (the version that it is compared with), ``python``, ``date``, ``format``."""
    examples: dict[str, dict[str, Any]]
    rows: dict[str, dict[str, Any]]
    operators: dict[str, Any]
    probes: dict[str, dict[str, str]]
    asked_by: str
    signatures: dict[str, Any]

    @property
    def torch(self) -> str:
        return self.of["torch"]


def load(root: Path) -> list[Measured]:
    """All versions that were measured, the oldest first.

    :raises DataError: if a file cannot be read.
    """
    found = [read(file) for file in sorted((root / FOLDER).glob("*.json"))]
    return sorted(found, key=lambda measured: parts(measured.torch))


def read(file: Path) -> Measured:
    """
    :raises DataError: if it is no JSON, lacks something, or has another format.
    """
    again = f"measure again: nox -s versions -- {file.stem}"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        measured = Measured(file=file, **data)
        about = measured.of["torch"], measured.of["against"], measured.of["date"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{file}: cannot be read as measurements: {type(error).__name__}: {error}; {again}") from None
    if measured.of.get("format") != FORMAT or about[0] != file.stem:
        raise DataError(f"{file}: is of another format, or not of torch {file.stem}; {again}")
    return measured


def write(folder: Path, measured: Measured) -> Path:
    """Keep it in a folder, whole or not at all; entries that did not change keep their lines. Returns the file."""
    file = folder / f"{measured.torch}.json"
    data = {name: getattr(measured, name) for name in Measured.__slots__ if name != "file"}
    toolbox.write_whole(file, json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return file


def answers_all(measured: Measured) -> bool:
    """Whether each of today's probes was asked, in today's way."""
    asked = {(subject, key) for subject, answers in measured.probes.items() for key in answers}
    today = {(probe.subject, probe.key) for probe in probes.probes()}
    return measured.asked_by == probes.identity()["asked_by"] and today <= asked


def current(root: Path, measured: Measured) -> dict[str, dict[str, Any]]:
    """The ``examples`` and ``rows`` that were measured as they are now."""
    examples_gone = {
        *stale_examples(root, measured),
        *(measured.examples.keys() - examples.scripts(root / "examples").keys()),
    }
    rows_gone = {
        *stale_rows(root, measured),
        *(measured.rows.keys() - {row.title for row in then_and_now.rows(root / then_and_now.PAGE)}),
    }
    return {
        "examples": {name: found for name, found in measured.examples.items() if name not in examples_gone},
        "rows": {title: found for title, found in measured.rows.items() if title not in rows_gone},
    }


def stale(root: Path, measured: Measured, torch: str) -> list[str]:
    """What of the data is not of the sources as they are, each as a sentence without its file.

    :param torch: the version that the build has.
    """
    if measured.of["against"] != torch:
        return [f"all: compared with torch {measured.of['against']}, and this build has {torch}"]
    return [
        *(f"{name}: its code has changed" for name in stale_examples(root, measured)),
        *(f"then and now, {title}: its check has changed" for title in stale_rows(root, measured)),
    ]


def stale_examples(root: Path, measured: Measured | None) -> list[str]:
    """The examples that were not measured as they are now."""
    known = measured.examples if measured else {}
    found = examples.scripts(root / "examples")
    return [name for name, script in found.items() if known.get(name, {}).get("code") != examples.code_hash(script)]


def stale_rows(root: Path, measured: Measured | None) -> list[str]:
    """The titles of the rows of then-and-now that were not measured as they are now."""
    known = measured.rows if measured else {}
    found = then_and_now.rows(root / then_and_now.PAGE)
    return [row.title for row in found if known.get(row.title, {}).get("code") != row.code]
