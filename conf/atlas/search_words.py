"""Text as the words of an index: whole names and their parts, each reduced to a stem; and words that mean the same.

``conf/static/search_engine.js`` does the same with a question; ``tests/browser/test_search.py`` holds the two together.
The stemmer is short on purpose: both languages must agree on it, and a stem that is wrong on both sides still finds its page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

_SYNONYMS = Path(__file__).with_name("synonyms.toml")
_DROPPED = """
a about an and are as at be been but by can could did do does doing for from had has have how i if in into is it its me
my of on or our should so some than that the their them then there these they this those to too was we were what when
where which while who why will with would you your
"""
_WEAK = """
after all always any before between code correctly difference different error explain get gets give got happen happens
help implement make mean meaning need not only problem properly python pytorch question same still tensor torch two
understand use used using value want way work works
"""
#: Words that say nothing: they are not in the index, and those of a question are dropped.
DROPPED = frozenset(_DROPPED.split())
#: Words that fill a question. They are found, and count little.
WEAK = frozenset(_WEAK.split())

_CHINESE = "\u3400-\u9fff"
_TOKEN = re.compile(rf"[{_CHINESE}]+|[^\W{_CHINESE}]+")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
#: A suffix and what takes its place, the first that fits. At least three letters must stay.
_SUFFIXES = (
    *(("isations", "iz"), ("isation", "iz"), ("izations", "iz"), ("ization", "iz"), ("ising", "iz"), ("ised", "iz")),
    *(("ises", "iz"), ("ise", "iz"), ("ations", "at"), ("ation", "at"), ("ions", ""), ("ion", ""), ("ies", "y")),
    *(("ied", "y"), ("sses", "ss"), ("ings", ""), ("ing", ""), ("ers", ""), ("er", ""), ("ors", ""), ("or", "")),
    *(("ours", ""), ("our", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", ""), ("e", "")),
)
_SINGULAR = re.compile(r"(?<![siau])s$")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")


def stem_word(word: str) -> str:
    """What forms of a word have in common. Names with digits or underscores, and short words, stay as they are.

    >>> [stem_word(word) for word in ["accumulating", "accumulation", "accumulates", "initialisation", "dropped", "copies"]]
    ['accumulat', 'accumulat', 'accumulat', 'initializ', 'drop', 'copy']
    """
    if len(word) < 4 or not re.fullmatch("[a-z]+", word):
        return word
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return _DOUBLED.sub(r"\1", word[: -len(suffix)]) + instead
    return _SINGULAR.sub("", word)


def split_words(text: str) -> Iterator[str]:
    """The stems of a text, in order. A name comes whole and in its parts, Chinese also in pairs of signs.

    >>> list(split_words("Call retain_grad() on MulBackward0"))
    ['call', 'retain_grad', 'retain', 'grad', 'mulbackward0', 'mul', 'backward']
    >>> list(split_words("叶子张量"))
    ['叶子张量', '叶子', '子张', '张量']
    """
    for token in _TOKEN.findall(text):
        if re.match(f"[{_CHINESE}]", token):
            yield token
            if len(token) > 2:
                yield from (token[start : start + 2] for start in range(len(token) - 1))
            continue
        pieces = _PIECE.findall(token) if re.search(r"_|[a-z][A-Z]", token) else []
        for word in (token, *pieces) if len(pieces) > 1 or "_" in token else (token,):
            if (word := word.lower().strip("_") if word != token else word.lower()) and _is_counted(word):
                yield stem_word(word)


def _is_counted(word: str) -> bool:
    return len(word) > 1 and not re.fullmatch("[0-9]+", word) and word not in DROPPED


def read_synonyms() -> dict[str, list[str]]:
    """What ``synonyms.toml`` says, in stems: of each word those whose pages it finds too, a little lower."""
    with _SYNONYMS.open("rb") as file:
        found = tomllib.load(file)
    return {stem_word(word): list(dict.fromkeys(split_words(others))) for word, others in found.items()}
