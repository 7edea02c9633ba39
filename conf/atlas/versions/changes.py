"""What versions of PyTorch answer otherwise than those before them: read from the data that ``nox -s versions`` keeps."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sphinx.util.docutils import SphinxDirective

#: Below docs/: what ``conf/measure/versions.py`` found, which says how it is to be read; and what a change means, by hand.
DATA, EXPLAINED = Path("reference/versions.json"), Path("reference/versions.toml")
#: Kinds of things, in the order of the page. Rows of then-and-now and messages of examples were measured once.
KINDS = ("kinks", "operators", "refuses", "warns", "messages", "nodes", "signatures", "rows")
#: What the data have of an operator, in their order, and what the operators' table calls its columns.
COLUMNS = ("node", "keeps", "shares memory", "result changed", "input changed", "2nd derivative", "forward mode")


@dataclass(frozen=True, slots=True)
class Explanation:
    text: str
    link: str = ""  # the pull request, issue or release note; empty where none was found


@dataclass(frozen=True, slots=True)
class Change:
    """Something has another value in a version than in the one that was measured before it."""

    kind: str
    what: str  # the key of a probe, an operator and a column, the name of a function, a page and a message, a row's title
    before: str  # the older version
    since: str  # the newer one, of those that were measured
    was: str
    now: str
    why: Explanation | None


class Changes:
    """All that was measured, read from the folder ``docs``.

    :ivar versions: those that were measured, the oldest first.
    :ivar values: by kind and thing, the value of each version that has one.
    :raises ValueError: if a file is not what it should be.
    """

    def __init__(self, docs: Path) -> None:
        data = json.loads((docs / DATA).read_text(encoding="utf-8"))
        self.versions = list(data["versions"])
        self.values: dict[tuple[str, str], dict[str, str]] = {}
        for kind in KINDS:
            for what, points in data.get(kind, {}).items():
                self._add_values(kind, what, points)
        explained = (
            tomllib.loads((docs / EXPLAINED).read_text(encoding="utf-8")) if (docs / EXPLAINED).exists() else {}
        )
        self.explained = {
            probe: Explanation(change["text"], change.get("link", ""))
            for change in explained.get("change", ())
            for probe in change["probes"]
        }

    def _add_values(self, kind: str, what: str, points: dict[str, Any]) -> None:
        """Keep the values of one thing, which has one in the data only where it differs from the version before."""
        value = None
        for version in self.versions:
            value = points.get(version, value)
            if value is None:
                continue
            if kind == "operators":
                for column, cell in zip(COLUMNS, value, strict=True):
                    text = " ".join(cell) if isinstance(cell, list) else cell
                    self.values.setdefault((kind, f"{what}: {column}"), {})[version] = text
            else:
                self.values.setdefault((kind, what), {})[version] = value

    def list_changes(self) -> Iterator[Change]:
        """What changed, kind by kind; of each thing the oldest change first."""
        for (kind, what), values in self.values.items():
            for before, since in itertools.pairwise(values):
                if values[before] != values[since]:
                    why = self.explained.get(f"{kind}: {what}")
                    yield Change(kind, what, before, since, values[before], values[since], why)

    def find_change(self, probe: str, release: str) -> Change:
        """The change of a probe in a release.

        :param probe: its subject and key, such as ``kinks: x.sqrt() at x = [0]``.
        :param release: such as ``2.14``; the newer of the two versions is of that release or, if none was measured, later.
        :raises LookupError: if there is no such probe, or it did not change there; the message says what was measured.
        """
        kind, _colon, what = probe.partition(": ")
        values = self.values.get((kind, what))
        if values is None:
            raise LookupError(f"no probe {probe!r}; conf/measure/probes.toml has them")
        for change in self.list_changes():
            before, since = split_version(change.before)[:2], split_version(change.since)[:2]
            if (change.kind, change.what) == (kind, what) and before < split_version(release) <= since:
                return change
        measured = ", ".join(f"{value!r} on {version}" for version, value in values.items())
        raise LookupError(f"{probe!r} was not measured to change in {release}: {measured}")


@lru_cache(maxsize=2)
def _read_once(docs: Path, _saved: tuple[int, ...]) -> Changes:
    return Changes(docs)


def read_changes(directive: SphinxDirective) -> Changes:
    """What was measured, for the page with a directive, which is read again when the data change.

    :raises docutils.parsers.rst.DirectiveError: if there are no data, or they cannot be used.
    """
    docs = Path(directive.env.srcdir)
    files = [docs / DATA, docs / EXPLAINED]
    for file in files:
        directive.env.note_dependency(str(file))
    try:
        return _read_once(docs, tuple(file.stat().st_mtime_ns for file in files if file.exists()))
    except (OSError, ValueError, KeyError) as error:
        raise directive.error(f"{DATA} cannot be used: {type(error).__name__}: {error}") from None


def split_version(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it with another.

    >>> split_version("2.4.1") < split_version("2.14.1")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version)))
