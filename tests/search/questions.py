"""The questions on which the search is judged, in two halves: settings are chosen on one, and what is reported is the other."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asked, and the addresses below the site's root that they would be glad to land on."""

    query: str
    pages: tuple[str, ...] = ()

    @property
    def is_for_choosing(self) -> bool:
        """Half of the questions, whatever their order in the file. Nothing may be chosen by looking at the others."""
        return hashlib.sha256(self.query.encode()).digest()[0] % 2 == 1


def answered() -> list[Question]:
    """Questions that the site answers."""
    return _read("questions.toml")


def unanswered() -> list[Question]:
    """Questions that no page of the site answers."""
    return _read("unanswered.toml")


def _read(name: str) -> list[Question]:
    with (_HERE / name).open("rb") as file:
        found = tomllib.load(file)["question"]
    return [Question(one["query"], tuple(f"{page}.html" for page in one.get("pages", ()))) for one in found]
