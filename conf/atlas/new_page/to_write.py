"""The sentences of a script that are still the template's: a page that has one may be built and tested, and not published.

A line is the template's if it has the words that begin what is to be written, or if it is a line of such a sentence: what is
left of a sentence is found without them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from . import templates

MARK = re.compile(r"to write:\s*", re.IGNORECASE)
_WORDS = 4  # a shorter line may be anybody's
_RULE = re.compile(r"([-=])\1{3,}$")


def left(script: str) -> Iterator[tuple[int, str]]:
    """Where a template's sentences are in a script, and how each begins. Lines that follow each other are one.

    >>> list(left("# To write: it,\\n# the reference, that a reader needs next.\\n# Mine.\\n# what is measured on a GPU\\n"))
    [(1, 'To write: it,'), (4, 'what is measured on a GPU')]
    """
    before = 0
    for number, line in enumerate(script.splitlines(), 1):
        words = _bare(line)
        begins = MARK.search(words) is not None
        if begins or words in _own():
            if begins or number != before + 1:
                yield number, words
            before = number


@cache
def _own() -> frozenset[str]:
    """The lines of the sentences that the templates begin with the mark, without the mark."""
    found = set()
    for name in (templates.LESSON, templates.MEASURED, templates.ERROR):
        in_docstring = begun = False
        for line in templates.text(name).splitlines():
            words = _bare(line)
            in_docstring ^= line.endswith('"""')
            begun = bool(words) and (begun or MARK.search(words) is not None)
            if begun and (in_docstring or line.startswith("#")) and not _RULE.match(words):
                found.add(MARK.sub("", words))
    return frozenset(words for words in found if len(words.split()) >= _WORDS)


def _bare(line: str) -> str:
    return line.strip().removeprefix("#").strip()


def report(examples: Path) -> list[str]:
    """What is still the template's in all scripts and in the file of tags, each with file and line."""
    found = []
    for path in sorted([*examples.glob("*/*.py"), *examples.glob("*.toml")]):
        where = f"{examples.name}/{path.relative_to(examples).as_posix()}"
        text = path.read_text(
            encoding="utf-8", errors="replace"
        )  # one that is not UTF-8 is reported when it is to run
        found += [f"{where}:{line}: {words}" for line, words in left(text)]
    return found
