"""The rows of ``docs/then-and-now.md`` and their doctests, run one at a time, each by itself."""

from __future__ import annotations

import doctest
import re
import runpy
from dataclasses import dataclass
from functools import cache
from typing import Any

from sources import ROOT

PAGE = ROOT / "docs" / "then-and-now.md"

_ROW = re.compile(r"^### (?P<title>.+)$", re.MULTILINE)
_BLOCK = "^```{{{kind}}} then\n(?P<code>.*?)^```$"


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    check: str
    """Its doctest."""

    def run(self) -> str:
        """Run the check; return what the doctest reports, which is nothing if it passes."""
        names: dict[str, Any] = {}
        exec(helpers(), names)
        report: list[str] = []
        test = doctest.DocTestParser().get_doctest(self.check, names, self.title, PAGE.name, 0)
        doctest.DocTestRunner(optionflags=_flags(), verbose=False).run(test, out=report.append)
        return "".join(report)


def rows() -> list[Row]:
    """All rows, in the order of the page."""
    titles, texts = _ROW.findall(_page()), _ROW.split(_page())[2::2]
    return [Row(title, "".join(_blocks("doctest", text))) for title, text in zip(titles, texts, strict=True)]


def helpers() -> str:
    """The code that the checks share: what they import, and their helpers."""
    return "import torch\n" + "".join(_blocks("testcode", _page()))


def _blocks(kind: str, text: str) -> list[str]:
    return re.findall(_BLOCK.format(kind=kind), text, re.MULTILINE | re.DOTALL)


@cache
def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


@cache
def _flags() -> int:
    return runpy.run_path(str(ROOT / "conf" / "conf.py"))["doctest_default_flags"]
