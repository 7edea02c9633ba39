"""Text of a page as words to show elsewhere: on one line, and whole sentences of it."""

from __future__ import annotations

import re

LONGEST = 300  # characters; a first sentence may be longer
#: Abbreviations after which a sentence goes on, though a capital letter follows.
_GOES_ON = ("e.g.", "E.g.", "i.e.", "I.e.", "vs.", "cf.", "Cf.", "Fig.", "Eq.")
_END = re.compile("".join(rf"(?<!\b{re.escape(short)})" for short in _GOES_ON) + r"(?<=[.?!:])\s+(?=[A-Z`])")


def one_line(text: str) -> str:
    """The text with one space wherever it has white space.

    >>> one_line(" a title\\n  in two lines")
    'a title in two lines'
    """
    return " ".join(text.split())


def first_sentences(text: str, longest: int = LONGEST) -> str:
    """As many whole sentences as fit into ``longest`` characters; the first, however long it is.

    >>> first_sentences("One is short. The second is not that short.", longest=20)
    'One is short.'
    """
    sentences = _END.split(text)
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + 1 + len(sentence) > longest:
            break
        kept = f"{kept} {sentence}"
    return kept
