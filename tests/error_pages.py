"""What examples say of themselves to a reader with a problem: the message, and what someone without one would search for."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup

from markup import OUTPUTS, text_of

#: A message that the build cannot raise.
QUOTED = ".quoted-message pre"

_SYMPTOM = re.compile(r"^\s+! single: (.+)$", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")  # in reStructuredText, as the backticks of a message in a title


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """``address`` lies below the site's root. Of a page about an error ``title`` is the message, as PyTorch prints it."""

    address: str
    title: str
    symptoms: tuple[str, ...]


def read(script: Path) -> ErrorPage:
    """The page of an example ``examples/CHAPTER/NAME.py``."""
    words = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return ErrorPage(
        f"gallery/{script.parent.name}/{script.stem}.html",
        _ESCAPED.sub(r"\1", words.strip().splitlines()[0]),
        tuple(symptom.strip() for symptom in _SYMPTOM.findall(words)),
    )


def all_of(root: Path) -> list[ErrorPage]:
    """The pages about errors."""
    return [read(script) for script in sorted((root / "examples" / "errors").glob("*.py"))]


def with_symptoms(root: Path) -> list[ErrorPage]:
    """All pages that name a symptom, in whatever chapter."""
    pages = [read(script) for script in sorted((root / "examples").glob("*/*.py"))]
    return [page for page in pages if page.symptoms]


def message(title: str, page: BeautifulSoup) -> str | None:
    """The first output of the built page that has the title in it, word for word; or the quote of a message from elsewhere."""
    return next((text for shown in page.select(f"{OUTPUTS}, {QUOTED}") if title in (text := text_of(shown))), None)
