"""What a change means for a reader, and where it was made: ``explained.toml``, written by hand."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("explained.toml")


@dataclass(frozen=True, slots=True)
class Explanation:
    text: str
    link: str = ""
    """The pull request, issue or release note; empty where none was found."""


@cache
def explanations() -> dict[tuple[str, str], Explanation]:
    """By kind and thing, as ``history`` names them."""
    found = {}
    for change in tomllib.loads(FILE.read_text(encoding="utf-8")).get("change", ()):
        for probe in change["probes"]:
            kind, _, what = probe.partition(": ")
            found[kind, what] = Explanation(change["text"], change.get("link", ""))
    return found
