"""What was measured of all versions, put together: for each thing its values from the oldest version to the newest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from atlas.operators import report

from . import measured, own_answers
from .measured import Measured
from .measuring import compare, examples, then_and_now
from .measuring.environment import parts
from .probes import all as probes

#: Kinds of things, in the order of the page.
KINDS = ("kinks", "operators", "refuses", "warns", "messages", "nodes", "signatures", "rows")


@dataclass(frozen=True, slots=True)
class Change:
    """Something has another value in a version than in the one that was measured before it."""

    kind: str
    what: str
    """The key of a probe, the name of an operator and a column, of a function, of a page, or the title of a row."""
    before: str
    """The older version."""
    since: str
    """The newer one, of those that were measured."""
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class History:
    own: str
    """The build's own version."""
    versions: list[Measured]
    values: dict[tuple[str, str], dict[str, str]]
    """By kind and thing, for each version that it was measured in. Things that never differ are here only for probes."""
    stale: dict[str, list[str]] = field(default_factory=dict)
    """By version, what was measured of other sources, and is left out."""
    current: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """By version, ``examples`` and ``rows`` as they are now."""

    def order(self) -> list[str]:
        """All versions, the oldest first."""
        return sorted({self.own, *(version.torch for version in self.versions)}, key=parts)

    def changes(self) -> Iterator[Change]:
        """What changed, kind by kind; of each thing the oldest change first."""
        order = self.order()
        for kind in KINDS:
            for (of, what), values in self.values.items():
                if of != kind:
                    continue
                there = [version for version in order if version in values]
                for before, since in itertools.pairwise(there):
                    if values[before] != values[since]:
                        yield Change(kind, what, before, since, values[before], values[since])

    def holds_on(self, page: str) -> tuple[list[str], list[str]]:
        """The other versions on which all asserts of an example hold, and those on which one fails.

        :param page: such as ``graphs/first_graph``. Versions in which it was not measured as it is now are in neither.
        """
        known = [(version.torch, self.current[version.torch]["examples"].get(page)) for version in self.versions]
        holds = [torch for torch, found in known if found and not found["faults"]]
        fails = [torch for torch, found in known if found and found["faults"]]
        return holds, fails

    def wordings(self, page: str) -> dict[str, list[tuple[str, str]]]:
        """By version the messages of an example that have other words there: ours, and theirs."""
        found = {}
        for version in self.versions:
            example = self.current[version.torch]["examples"].get(page)
            if example and (pairs := compare.messages(example["differ"])):
                found[version.torch] = pairs
        return found


def load(docs: Path) -> History:
    """Everything, read once in a process as long as no file changes.

    :raises measured.DataError: if a file of data cannot be used.
    """
    root = docs.parent
    data = [*sorted((root / measured.FOLDER).glob("*.json")), docs / own_answers.DATA]
    return _load(docs, tuple((file, file.stat().st_mtime_ns) for file in [*data, *sources(root)] if file.exists()))


def sources(root: Path) -> list[Path]:
    """What was measured: data of other code than theirs are left out."""
    return [root / then_and_now.PAGE, *examples.scripts(root / "examples").values()]


@lru_cache(maxsize=2)
def _load(docs: Path, files: tuple[tuple[Path, int], ...]) -> History:
    root, own = docs.parent, own_answers.identity()["torch"]
    versions, stale, current = [], {}, {}
    for version in measured.load(root):
        if gone := measured.stale(root, version, own):
            stale[version.torch] = gone
        if version.of["against"] == own:
            versions.append(version)
            current[version.torch] = measured.current(root, version)
    values: dict[tuple[str, str], dict[str, str]] = {}
    ours = own_answers.load(docs) or {"probes": {}, "signatures": {}}
    _probes(values, own, ours["probes"], versions, stale)
    _signatures(values, own, ours["signatures"], versions, stale)
    _operators(values, own, versions, stale)
    for version in versions:
        _rows(values, own, version.torch, current[version.torch]["rows"])
        _messages(values, own, version.torch, current[version.torch]["examples"])
    _fill(values, own, versions, current)
    return History(own, versions, values, stale, current)


def _probes(
    values: dict, own: str, ours: dict[str, dict[str, str]], versions: list[Measured], stale: dict[str, list[str]]
) -> None:
    asked_by = probes.identity()["asked_by"]
    for subject, answers in ours.items():
        for key, answer in answers.items():
            values[subject, key] = {own: answer}
    for version in versions:
        if version.asked_by != asked_by:
            stale.setdefault(version.torch, []).append("all probes: they are asked in another way now")
            continue
        for subject, answers in version.probes.items():
            for key, answer in answers.items():
                if (subject, key) in values:
                    values[subject, key][version.torch] = answer


def _signatures(
    values: dict, own: str, ours: dict[str, str], versions: list[Measured], stale: dict[str, list[str]]
) -> None:
    for version in versions:
        differ = version.signatures["differ"]
        if any(ours.get(name) != was for name, (was, _is) in differ.items()):
            stale.setdefault(version.torch, []).append("all signatures: the build's own are not those compared with")
            continue
        for name, (was, now) in differ.items():
            values.setdefault(("signatures", name), {own: was})[version.torch] = now


def _operators(values: dict, own: str, versions: list[Measured], stale: dict[str, list[str]]) -> None:
    code = report.identity()["code"]
    for version in versions:
        found = version.operators
        if found["code"] != code:
            stale.setdefault(version.torch, []).append("all operators: they are probed in another way now")
            continue
        for cell in found.get("differ", ()):
            key = "operators", f"{cell['name']}: {cell['column']}"
            values.setdefault(key, {own: _text(cell["was"])})[version.torch] = _text(cell["is"])


def _rows(values: dict, own: str, torch: str, rows: dict[str, dict[str, Any]]) -> None:
    for title, found in rows.items():
        if found["failed"]:
            first = found["failed"][0]
            values.setdefault(("rows", title), {own: "holds"})[torch] = f"{first['code']}\n{first['got']}".strip()


def _messages(values: dict, own: str, torch: str, examples: dict[str, dict[str, Any]]) -> None:
    for page, found in examples.items():
        for ours, theirs in compare.messages(found["differ"]):
            values.setdefault(("messages", f"{page}: {ours}"), {own: ours})[torch] = theirs


def _fill(values: dict, own: str, versions: list[Measured], current: dict[str, dict[str, Any]]) -> None:
    """What was compared and does not differ has the value of the build's own version."""
    for (kind, what), known in values.items():
        for version in versions:
            if version.torch in known:
                continue
            if _compared(kind, what, version, current[version.torch]):
                known[version.torch] = known[own]


def _compared(kind: str, what: str, version: Measured, current: dict[str, Any]) -> bool:
    if kind == "signatures":
        return what not in version.signatures["missing"]
    if kind == "operators":
        return "failed" not in version.operators and what.partition(":")[0] not in version.operators["missing"]
    if kind == "rows":
        return what in current["rows"]
    if kind == "messages":
        found = current["examples"].get(what.partition(":")[0])
        return bool(found) and not found["faults"]
    return False


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
