"""The messages of errors and warnings on pages, for a reader who pastes one.

The names, shapes and numbers of a pasted message are the reader's own. The browser leaves them out of both sides
(``conf/static/search_engine.js``), so a message is kept here as it was printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes

from atlas.toolbox import first_sentences, one_line

LONGEST = 120  # characters of a message; what comes after is advice that many messages share
SHORTEST = 4  # words of a message: less is not one, or fits anything
#: The heading above what to do.
_FIX = "The fix"
_RAISED = re.compile(r"^\W*(?:\w+\.)*\w*(?:Error|Warning|Exception): (.+)")


def find_raised(document: nodes.document) -> Iterator[str]:
    """The messages in the outputs of a page, each once."""
    seen = set()
    for output in document.findall(nodes.literal_block):
        if output.get("language") in ("none", "default", "ipythontb", "pycon", None, "text", "myst-ansi"):
            for line in output.astext().splitlines():
                message = _RAISED.match(line)
                if message and len(message[1].split()) >= SHORTEST and message[1] not in seen:
                    seen.add(message[1])
                    yield message[1][:LONGEST]


def find_older_wordings(document: nodes.document) -> Iterator[str]:
    """What other versions say: on a page about an error such a message stands in italics."""
    for emphasis in document.findall(nodes.emphasis):
        text = one_line(emphasis.astext())
        if len(text.split()) >= SHORTEST:
            yield text[:LONGEST]


def read_other_wordings(docs: Path, page: str) -> set[str]:
    """How versions of PyTorch word the messages of a page of the gallery, from what was measured of them."""
    file = docs / "reference" / "versions.json"
    data = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    of_page = (of for what, of in data.get("messages", {}).items() if page == f"gallery/{what.partition(': ')[0]}")
    found = (_RAISED.match(text) for of in of_page for text in of.values() if text)
    return {message[1][:LONGEST] for message in found if message}


def find_fix(document: nodes.document) -> str:
    """The first sentences below the heading *The fix*; empty for a page without one."""
    for section in document.findall(nodes.section):
        if isinstance(section[0], nodes.title) and section[0].astext() == _FIX:
            for paragraph in section.findall(nodes.paragraph):
                return first_sentences(one_line(paragraph.astext()), longest=150)
    return ""


def order_messages(site: Iterable[tuple[str, list[str], list[str], str]]) -> list[list[Any]]:
    """Messages with the number of their page, in the order in which the browser prefers one of two that are alike.

    A page about an error explains the message in its title, and the other wordings of it. A third item, 1, says of any other
    message that its page raises it and is about something else.

    :param site: of each page its title, what it raises, other wordings, and the fix, which only a page about an error has.
    """
    own, siblings, siblings_of_lessons = [], [], []
    for number, (title, raised, wordings, fix) in enumerate(site):
        said = dict.fromkeys(raised)
        whole = [
            one for one in said if not any(one != other and other.startswith(one.rstrip(". ")) for other in said)
        ]
        about = [one for one in whole if fix and title.lower() in one.lower()]
        if fix:
            own += [[number, one] for one in dict.fromkeys([title, *wordings])]
            own += [[number, one] for one in about if one != title]
        others = siblings if fix else siblings_of_lessons
        others += [[number, one, 1] for one in whole if one not in about]
    return own + siblings + siblings_of_lessons
