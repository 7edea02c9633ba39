"""What a page can get wrong: a source, the line at fault, and what must be said about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEAD = '''"""
Page
====

A page.
"""

import torch

'''


@dataclass(frozen=True, slots=True)
class Fault:
    file: str
    """Path in the tiny site."""
    text: str
    says: str
    at: str = ""
    """How the line begins that must be named. Empty: any line of the page that sphinx-gallery makes of the script."""

    def is_reported(self, output: str) -> bool:
        """Whether the output names the file and the line, and says what is wrong on that line or soon after."""
        path = Path(self.file)
        exact = rf'{re.escape(path.name)}(?::|", line ){self._line()}\b' if self.at else ""
        where = exact or rf"{path.stem}\.(?:py|rst):\d+"
        return re.search(rf"(?<!\w){where}.*\n?(?:.*\n){{0,4}}?.*{re.escape(self.says)}", output) is not None

    def _line(self) -> int:
        (number,) = (i for i, line in enumerate(self.text.splitlines(), 1) if line.startswith(self.at))
        return number


def example(name: str, code: str, says: str, at: str = "", chapter: str = "faults") -> Fault:
    """A fault in an example, whose page is called like its script: no two pages may have one title."""
    return Fault(f"examples/{chapter}/{name}.py", head_of(name) + code, says, at)


def head_of(title: str) -> str:
    """The beginning of a page with another title."""
    return HEAD.replace("Page\n====", f"{title}\n{'=' * len(title)}")


def doc(name: str, text: str, says: str, at: str) -> Fault:
    """A fault in a Markdown page."""
    return Fault(f"docs/{name}.md", text, says, at)
