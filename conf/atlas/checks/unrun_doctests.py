"""Every ``>>>`` of a page under ``docs/`` must be one that ``nox -s doctest`` runs.

In Markdown only the ``{doctest}`` directive is run. A plain fence with ``>>>`` looks the same to the reader and is never
tried, so it is an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

_FENCE = re.compile(r"^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?(?P<marks>`{3,}(?=[^`]*$)|~{3,}|:{3,})\s*(?P<info>.*)$")
_PROMPT = re.compile(r"^[\s>]*>>>( |$)")


def untested(markdown: str) -> Iterator[int]:
    r"""The line numbers of prompts that no doctest runs; one for each fence or paragraph.

    >>> list(untested("```{doctest}\n>>> 1 + 1\n2\n```\n"))
    []
    >>> list(untested("text\n\n```python\n>>> 1 + 1\n2\n```\n"))
    [4]
    """
    open_fences: list[tuple[str, str]] = []
    reported = False
    for number, line in enumerate(markdown.splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence and open_fences and not fence["info"] and fence["marks"].startswith(open_fences[-1][0]):
            open_fences.pop()
            reported = False
        elif fence and (not open_fences or _is_directive(open_fences[-1][1])) and _opens(fence["info"], open_fences):
            open_fences.append((fence["marks"], fence["info"]))
            reported = False
        elif _PROMPT.match(line):
            if not (open_fences and open_fences[-1][1].startswith("{doctest}")) and not reported:
                yield number
                reported = True
        elif not line.strip() and not open_fences:
            reported = False


def _is_directive(info: str) -> bool:
    return info.startswith("{")


def _opens(info: str, open_fences: list[tuple[str, str]]) -> bool:
    return bool(info) or not open_fences


def check(app: Sphinx, docname: str, source: list[str]) -> None:
    """Report untested prompts of a Markdown page with file and line. Connected to ``source-read``."""
    if app.env.doc2path(docname).suffix != ".md":
        return
    for line in untested(source[0]):
        logger.error(
            "this example is never run: put it into a {doctest} directive, ```{doctest} … ```",
            location=(docname, line),
        )


def setup(app: Sphinx) -> None:
    app.connect("source-read", check)
