"""The tags of the gallery's pages: a few words that readers filter by, and for each page those that it is about.

They are in one file, ``examples/tags.toml``, so that a look at it shows all. sphinx-gallery reads tags from the scripts, where
a change of a tag would run the script again, and make its recording one of another script.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FILE = "tags.toml"
MOST = 3  # of one page


@dataclass(frozen=True, slots=True)
class Tags:
    """``words`` are all tags, in the order of the filter; ``of`` has those of each page, as ``chapter/page``."""

    words: list[str] = field(default_factory=list)
    of: dict[str, list[str]] = field(default_factory=dict)


def read(text: str) -> Tags:
    """
    :raises tomllib.TOMLDecodeError: if the text is no TOML; the message names line and column.

    >>> read('tags = ["b", "a"]\\n[graphs]\\nfirst_graph = ["a"]')
    Tags(words=['b', 'a'], of={'graphs/first_graph': ['a']})
    """
    found = tomllib.loads(text)
    chapters = {name: pages for name, pages in found.items() if isinstance(pages, dict)}
    return Tags(
        found.get("tags", []),
        {f"{chapter}/{page}": tags for chapter, pages in chapters.items() for page, tags in pages.items()},
    )


def faults(file: Path, pages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where the tags of these pages are at fault, as a path with its line, and what is wrong there."""
    name = f"{file.parent.name}/{file.name}"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    try:
        tags = read(text)
    except tomllib.TOMLDecodeError as error:
        yield name, f"this file is no TOML: {error}"
        return
    known = set(pages)
    for page in sorted(known):
        if not tags.of.get(page):
            yield f"{file.parent.name}/{page}.py", f"this page has no tag: add {_entry(page)} to {name}"
    for page, words in tags.of.items():
        where = f"{name}:{_line(text, page)}"
        if page not in known:
            yield where, f"there is no page {page}: remove its tags"
        for word in words:
            if word not in tags.words:
                yield where, f"there is no tag {word!r}: choose from {', '.join(tags.words)}"
        if len(words) > MOST or len(set(words)) < len(words):
            yield where, f"a page has at most {MOST} tags, each once"
    unused = [word for word in tags.words if not any(word in words for words in tags.of.values())]
    for word in unused:
        yield f"{name}:{_first(text, re.escape(json.dumps(word)))}", f"no page has the tag {word!r}: remove it"


def _entry(page: str) -> str:
    chapter, _, name = page.partition("/")
    return f'{name} = ["..."] below [{chapter}]'


def _line(text: str, page: str) -> int:
    chapter, _, name = page.partition("/")
    return _first(text, rf"\[{re.escape(chapter)}\]", rf"{re.escape(name)}\s*=")


def _first(text: str, *patterns: str) -> int:
    """The number of the first line that begins with the last pattern, behind lines that begin with those before it."""
    waiting = list(patterns)
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*{waiting[0]}", line):
            del waiting[0]
            if not waiting:
                return number
    return 1


def with_page(text: str, page: str, words: list[str], comment: str) -> str:
    """The file with the tags of one page more, last in its chapter.

    >>> print(with_page('tags = ["a"]\\n\\n[b]\\nc = ["a"]\\n\\n[d]\\ne = ["a"]\\n', "b/new", ["a"], "why"))
    tags = ["a"]
    <BLANKLINE>
    [b]
    c = ["a"]
    new = ["a"]  # why
    <BLANKLINE>
    [d]
    e = ["a"]
    <BLANKLINE>
    """
    chapter, _, name = page.partition("/")
    line = f"{name} = [{', '.join(map(json.dumps, words))}]  # {comment}\n"
    head, mark, rest = text.partition(f"[{chapter}]\n")
    if not mark:
        return f"{text.rstrip()}\n\n[{chapter}]\n{line}"
    own, gap, others = rest.partition("\n\n")
    return f"{head}{mark}{own.rstrip()}\n{line}" + (f"\n{others}" if gap else "")
