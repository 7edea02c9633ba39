"""The rows of ``docs/then-and-now.md`` and their doctests, run one at a time, each by itself."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLAGS = doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1
"""Of all doctests of the site; and the message of an error counts."""
_ROW = re.compile(r"^### (?P<title>.+)$", re.MULTILINE)
_BLOCK = "^```{{{kind}}} then\n(?P<code>.*?)^```$"


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    check: str  # its doctest
    helpers: str  # code that runs before the doctest

    def run_check(self) -> str:
        """Run the check; return what the doctest reports, which is nothing if it passes."""
        names: dict[str, Any] = {}
        exec(self.helpers, names)
        test = doctest.DocTestParser().get_doctest(self.check, names, self.title, self.title, 0)
        report: list[str] = []
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append)
        return "".join(report)


def read_rows(page: Path) -> list[Row]:
    """All rows, in the order of the page."""
    text = page.read_text(encoding="utf-8")
    shared = "import torch\n" + "".join(_find_blocks("testcode", text))
    titles, texts = _ROW.findall(text), _ROW.split(text)[2::2]
    pairs = zip(titles, texts, strict=True)
    return [Row(title, "".join(_find_blocks("doctest", below)), shared) for title, below in pairs]


def _find_blocks(kind: str, text: str) -> list[str]:
    return re.findall(_BLOCK.format(kind=kind), text, re.MULTILINE | re.DOTALL)
