"""What the examples about errors say of themselves: the message, and what a reader without a message would search for."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

_SYMPTOM = re.compile(r"^\s+! single: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """``address`` lies below the site's root. ``title`` is the message, as PyTorch prints it."""

    address: str
    title: str
    symptoms: tuple[str, ...]


def read(script: Path) -> ErrorPage:
    """The page of an example ``examples/errors/NAME.py``."""
    words = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return ErrorPage(
        f"gallery/errors/{script.stem}.html",
        words.strip().splitlines()[0],
        tuple(symptom.strip() for symptom in _SYMPTOM.findall(words)),
    )


def all_of(root: Path) -> list[ErrorPage]:
    return [read(script) for script in sorted((root / "examples" / "errors").glob("*.py"))]
