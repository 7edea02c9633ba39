"""The rows of ``docs/then-and-now.md`` and their doctests, run one at a time, each by itself."""

from __future__ import annotations

import doctest
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas.gallery import sandbox
from atlas.gallery.process import count_cores

from .examples import without_traces

PAGE = Path("docs/then-and-now.md")
"""Below the root of the sources."""
FLAGS = doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1
"""Of all doctests of the site; and the message of an error counts."""
LONGEST = 500  # characters of what was got
_ROW = re.compile(r"^### (?P<title>.+)$", re.MULTILINE)
_BLOCK = "^```{{{kind}}} then\n(?P<code>.*?)^```$"


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    check: str
    """Its doctest."""
    helpers: str
    """Code that runs before the doctest."""

    @property
    def code(self) -> str:
        """What the outcome depends on, as a hash."""
        return hashlib.sha256(f"{self.helpers}\0{self.check}".encode()).hexdigest()[:16]

    def run(self) -> str:
        """Run the check; return what the doctest reports, which is nothing if it passes."""
        report: list[str] = []
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(self._test(), out=report.append)
        return "".join(report)

    def failures(self) -> list[dict[str, str]]:
        """What differs from the page: ``code``, ``want`` and ``got`` of each line."""
        noted = _Noting(optionflags=FLAGS, verbose=False)
        noted.run(self._test(), out=lambda text: None)
        return noted.failures_seen

    def _test(self) -> doctest.DocTest:
        names: dict[str, Any] = {}
        exec(self.helpers, names)
        return doctest.DocTestParser().get_doctest(self.check, names, self.title, PAGE.name, 0)


class _Noting(doctest.DocTestRunner):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.failures_seen: list[dict[str, str]] = []

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._note(example, got)

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self._note(example, f"{exc_info[0].__name__}: {exc_info[1]}")

    def _note(self, example: doctest.Example, got: str) -> None:
        want = example.exc_msg or example.want
        seen = {"code": example.source.strip(), "want": want.strip(), "got": without_traces(got.strip())[:LONGEST]}
        self.failures_seen.append(seen)


def rows(page: Path) -> list[Row]:
    """All rows, in the order of the page; none in a site that has no such page."""
    if not page.exists():
        return []
    text = page.read_text(encoding="utf-8")
    shared = "import torch\n" + "".join(_blocks("testcode", text))
    titles, texts = _ROW.findall(text), _ROW.split(text)[2::2]
    return [
        Row(title, "".join(_blocks("doctest", below)), shared) for title, below in zip(titles, texts, strict=True)
    ]


def measure(found: list[Row]) -> dict[str, dict[str, Any]]:
    """Run each row in a process of its own: by its title ``code`` and ``failed``."""
    answers = sandbox.run(Row.failures, found, at_once=count_cores(), time_limit=120.0, apart=True)
    crashed = ({"code": "", "want": "", "got": why} for _answer, why in answers)
    return {
        row.title: {"code": row.code, "failed": [crash] if answer is None else answer}
        for row, (answer, _why), crash in zip(found, answers, crashed, strict=True)
    }


def _blocks(kind: str, text: str) -> list[str]:
    return re.findall(_BLOCK.format(kind=kind), text, re.MULTILINE | re.DOTALL)
