"""What the search knows of all pages, as data: ``search-index.js`` has it, which the browser loads when somebody searches.

How much a page is about a word is BM25F [1]_, with the fields of ``_FIELDS``, in ``LEVELS`` steps. The rarity of a word
is counted in the browser. The words are sorted; of each only what differs from the word before is written, after the
number of letters that both begin with, a digit of base 36.

``search_engine.js`` takes a word for each space in ``words`` and a list of pages for each space in ``found``: the distance from
page to page, as a sign. ``levels`` has a digit for each page in ``found``, and behind it a sign for each sentence with the
word, of those that people say who want the page: its symptoms and its questions, up to 100. Who says nearly the same wants it.

The file grows with the pages: at most 0.56 KiB each, compressed. At some thousand pages it should be cut by chapter.

.. [1] S. Robertson, H. Zaragoza, M. Taylor: Simple BM25 extension to multiple weighted fields. CIKM 2004.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from posixpath import commonprefix
from typing import Any

from docutils import nodes

from .names import INDEX as NAMES
from .pages import read_pages
from .toolbox import first_sentences, one_line

# -- Words ----------------------------------------------------------------------------------------

# Text as the words of an index: whole names and their parts, each reduced to a stem; and words that mean the same.
# The browser makes words of a question by the same tables: they go into the index. ``tests/browser/test_search.py`` gives every
# text of the site to both. The stemmer is short: a stem that is wrong on both sides still finds its page.

_WORDS = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text(encoding="utf-8"))
QUESTIONS = "questions.toml"  # in examples/
#: Words that say nothing: they are not in the index, and those of a question are dropped.
DROPPED = frozenset(_WORDS["dropped"].split())

_CHINESE = "\u3400-\u9fff"
#: Letters of Europe's languages, Japanese and Korean: ``\w`` is not the same in both programs.
_LETTERS = "0-9A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u3040-\u30ff\uac00-\ud7af"
_ENDINGS = "(?:ions?|ings?|ers?|ors?|ours?|edly|ed|ly|es|e)$"
#: Patterns that mean the same in Python and in JavaScript. Of ``stems`` the first that fits; three letters must stay.
PATTERNS = {
    "token": f"[{_CHINESE}]+|[{_LETTERS}]+",
    "chinese": f"^[{_CHINESE}]",
    "joined": "_|[a-z][A-Z]",
    "piece": "[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+",
    "number": "^[0-9]+$",
    "stemmed": "^[a-z]{4,}$",
}
STEMS = (
    ("(?<=[a-z]{3})(?:is(?:ations?|ing|ed|es|e)|izations?)$", "iz"),
    ("(?<=[a-z]{3})ations?$", "at"),
    ("(?<=[a-z]{3})i(?:es|ed)$", "y"),
    ("(?<=[a-z]{3})sses$", "ss"),
    (rf"(?<=[a-z]{{2}}([bdgmnprt]))\1{_ENDINGS}", ""),
    (f"(?<=[a-z]{{3}}){_ENDINGS}", ""),
    ("(?<![siau])s$", ""),
)


def stem_word(word: str) -> str:
    """What forms of a word have in common. Names with digits or underscores, and short words, stay as they are.

    >>> [stem_word(word) for word in ["accumulating", "accumulation", "accumulates", "initialisation", "dropped", "copies"]]
    ['accumulat', 'accumulat', 'accumulat', 'initializ', 'drop', 'copy']
    """
    fits = (re.sub(*stem, word) for stem in STEMS if re.search(stem[0], word))
    return next(fits, word) if re.search(PATTERNS["stemmed"], word) else word


#: Words that fill a question, in stems. They are found, and count little.
WEAK = frozenset(map(stem_word, _WORDS["weak"].split()))


def split_words(text: str) -> Iterator[str]:
    """The stems of a text, in order. A name comes whole and in its parts, Chinese in pairs of signs: it has no spaces.

    >>> list(split_words("Call retain_grad() on MulBackward0"))
    ['call', 'retain_grad', 'retain', 'grad', 'mulbackward0', 'mul', 'backward']
    >>> list(split_words("叶子张量"))
    ['叶子', '子张', '张量']
    """
    for token in re.findall(PATTERNS["token"], text):
        if re.search(PATTERNS["chinese"], token):
            yield from (token[start : start + 2] for start in range(max(1, len(token) - 1)))
            continue
        pieces = re.findall(PATTERNS["piece"], token) if re.search(PATTERNS["joined"], token) else []
        names = (token, *pieces) if len(pieces) > 1 or "_" in token else (token,)
        for word in map(str.lower, names):
            if len(word) > 1 and not re.search(PATTERNS["number"], word) and word not in DROPPED:
                yield stem_word(word)


def read_synonyms(headings: Iterable[str] = ()) -> dict[str, list[str]]:
    """What ``synonyms.toml`` says, in stems: of each word those whose pages it finds too, a little lower.

    :param headings: those that end with a word in Chinese, as terms of the glossary do, are a line each.
    """
    translated = (re.fullmatch(f"(.+) ([{_CHINESE}]+)", heading) for heading in headings)
    found = {term[2]: term[1] for term in translated if term} | _WORDS["synonyms"]
    return {stem_word(word): list(dict.fromkeys(split_words(others))) for word, others in found.items()}


def read_questions(file: Path) -> dict[str, list[str]]:
    """What people ask whom a page answers, in their words, by the name of the page. They stand nowhere on the site."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


# -- Messages -------------------------------------------------------------------------------------

LONGEST = 120  # characters of a message; what comes after is advice that many messages share
SHORTEST = 4  # words of a message: less is not one, or fits anything
#: The heading above what to do.
_FIX = "The fix"
_RAISED = re.compile(r"^\W*(?:\w+\.)*\w*(?:Error|Warning|Exception): (.+)")
#: Any program raises these, or they stand around the message that matters: no page is about them.
_ANYBODYS = re.compile(
    r"index out of range$|object is not \w+$|has no len|operand type|recursion depth|Caught \w+ in DataLoader|got \d+ instead$"
)


def find_raised(document: nodes.document) -> dict[str, str]:
    """The messages in the outputs of a page, each with the anchor of the part that it is in."""
    found: dict[str, str] = {}
    for output in document.findall(nodes.literal_block):
        if output.get("language") in ("none", "default", "ipythontb", "pycon", None, "text", "myst-ansi"):
            for line in output.astext().splitlines():
                message = _RAISED.match(line)
                if message and len(message[1].split()) >= SHORTEST and not _ANYBODYS.search(message[1]):
                    found.setdefault(message[1][:LONGEST], _find_part(output))
    return found


def find_older_wordings(document: nodes.document) -> dict[str, str]:
    """What other versions say: on a page about an error such a message stands in italics. With anchors, as ``find_raised``."""
    said = {one_line(emphasis.astext()): _find_part(emphasis) for emphasis in document.findall(nodes.emphasis)}
    return {
        text[:LONGEST]: part
        for text, part in said.items()
        if len(text.split()) >= SHORTEST and not _ANYBODYS.search(text)
    }


def _find_part(node: nodes.Node) -> str:
    """The anchor of the part of a page that this is in."""
    while node.parent and not isinstance(node, nodes.section):
        node = node.parent
    return "".join(node["ids"][:1])


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


def order_messages(site: Iterable[tuple[Found, list[tuple[str, str]]]]) -> list[list[Any]]:
    """Messages with the number of their page, in the order in which the browser prefers one of two that are alike.

    A page about an error explains the message in its title, and the other wordings of it. Of any other message, which its page
    raises and is not about, a third item says which part has it: its number among the listed ones from 1, or its anchor.

    :param site: each page, with its listed parts.
    """
    own, siblings, siblings_of_lessons = [], [], []
    for number, (page, parts) in enumerate(site):
        places: dict[str, str | int] = {anchor: anchor for anchor, _title in page.sections}
        places |= {anchor: at for at, (anchor, _title) in enumerate(parts, start=1)}
        said = page.messages
        whole = [
            one for one in said if not any(one != other and other.startswith(one.rstrip(". ")) for other in said)
        ]
        about = [one for one in whole if page.fix and page.title.lower() in one.lower()]
        others = {one: said[one] for one in whole if one not in about}
        if page.fix:
            # what stands beside a sibling is a wording of the sibling
            elsewhere = places.keys() & others.values()
            others |= {one: part for one, part in page.wordings.items() if part in elsewhere}
            own += [[number, one] for one in dict.fromkeys([page.title, *page.wordings, *about]) if one not in others]
        found = siblings if page.fix else siblings_of_lessons
        found += [[number, one, places.get(part, 0)] for one, part in others.items()]
    return own + siblings + siblings_of_lessons


# -- The index ------------------------------------------------------------------------------------

PAGE = "search"  # it lists all others, so it is not in the index itself
SNIPPET = 95  # characters that a result shows of a page
COMMON = 0.5  # of the pages: a word that so many have, and none in more than its text, finds nothing
LEVELS = 6
SATURATION = 3.0
#: A page that has little of a word (up to 1) is left out where more pages than so many have it: others will be found for it.
_LITTLE = ((0.22, 4), (0.3, 8), (0.5, 14))
#: A heading of so many pages says nothing of one.
_OFTEN = 4


@dataclass(frozen=True, slots=True)
class Found:
    """A page as the search knows it.

    :ivar lead: the first sentences, which a result shows.
    :ivar symptoms: main index entries: what somebody would say who has the page's problem.
    :ivar row_anchor: of a page that is one long list, how the anchors of its rows begin. The rest is the row's name, with
        hyphens for dots.
    :ivar sections: anchor and title of each part that can be linked to: headings and terms.
    :ivar messages: what the page's code raises, each with the anchor of its part.
    :ivar wordings: how other versions word the message that a page about an error explains, likewise.
    :ivar fix: what to do, of a page about an error.
    :ivar fields: the words of each part of the page, and how often each is there.
    """

    title: str
    lead: str
    symptoms: list[str]
    row_anchor: str
    sections: list[tuple[str, str]]
    messages: dict[str, str]
    wordings: dict[str, str]
    fix: str
    fields: dict[str, Counter[str]]


@dataclass(frozen=True, slots=True)
class _Field:
    """How much a word in a field counts, and how much less in a field that is longer than others (0 to 1)."""

    weight: float
    length: float
    repeats: bool = False


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_FIELDS = {
    "title": _Field(9, 0.3),
    "symptoms": _Field(7, 0.1),
    "questions": _Field(9, 0.3),
    "entries": _Field(6, 0.1),
    "rows": _Field(9, 0),
    "sections": _Field(3, 0.4),
    "lead": _Field(3, 0.4),
    "messages": _Field(2, 0.4),
    "spoken": _Field(3, 0.2),
    "used": _Field(0.5, 0.3),
    "others": _Field(2, 0.2),
    "body": _Field(1, 0.7, repeats=True),
}


def weigh_words(site: list[dict[str, Counter[str]]]) -> dict[str, dict[int, int]]:
    """For each word the pages that have it, by number, with a weight from 1 to ``LEVELS``.

    :param site: of each page the words of its fields, and how often each is there.

    >>> leaf, graph = Counter(["leaf"]), Counter(["graph"])
    >>> site = [{"title": leaf, "body": leaf + graph}, {"title": graph, "body": graph}]
    >>> found = weigh_words([dict.fromkeys(_FIELDS, Counter()) | page for page in site])
    >>> found["leaf"].keys(), found["graph"][1] > found["graph"][0]
    (dict_keys([0]), True)
    """
    average = {name: max(1, sum(page[name].total() for page in site) / max(1, len(site))) for name in _FIELDS}
    raw: dict[str, dict[int, float]] = {}
    only_text: dict[str, bool] = {}
    for number, page in enumerate(site):
        for name, field in _FIELDS.items():
            longer = 1 - field.length + field.length * page[name].total() / average[name]
            for word, times in page[name].items():
                of_word = raw.setdefault(word, {})
                of_word[number] = of_word.get(number, 0) + field.weight * (times if field.repeats else 1) / longer
                only_text[word] = only_text.get(word, True) and name in ("body", "used", "others")
    found = {}
    for word, of_word in raw.items():
        if only_text[word] and len(of_word) > COMMON * len(site):
            continue
        share = {number: weight / (SATURATION + weight) for number, weight in of_word.items()}
        least = max((least for least, pages in _LITTLE if len(of_word) > pages), default=0)
        found[word] = {number: ceil(LEVELS * much) for number, much in share.items() if much >= least}
    return {word: of_word for word, of_word in found.items() if of_word}


def mark_sentences(site: Iterable[list[str]]) -> dict[tuple[str, int], str]:
    """For each word and page the sentences of the page that have the word: a sign for each, from ``:``.

    >>> sorted(mark_sentences([["a loss"], ["the tape", "loss on tape"]]).items())
    [(('loss', 0), ':'), (('loss', 1), ';'), (('tap', 1), ':;')]
    """
    marks: dict[tuple[str, int], str] = defaultdict(str)
    for number, sentences in enumerate(site):
        for place, sentence in enumerate(sentences):
            for word in {*split_words(sentence)} - WEAK:
                marks[word, number] += chr(ord(":") + place)
    return marks


def encode_pages(of_word: Iterable[int]) -> str:
    """The pages of a word, in order.

    >>> encode_pages({0, 2, 40})
    '#%I'
    """
    return "".join(chr(ord("#") + later - earlier) for earlier, later in pairwise([0, *sorted(of_word)]))


def encode_words(vocabulary: list[str]) -> str:
    """Sorted words, each as what differs from the one before.

    >>> encode_words(["grad", "gradcheck", "gradient", "leaf"])
    '0grad 4check 4ient 0leaf'
    """
    shared = (len(commonprefix(pair)) for pair in pairwise(["", *vocabulary]))
    return " ".join(
        _DIGITS[min(same, 35)] + word[min(same, 35) :] for same, word in zip(shared, vocabulary, strict=True)
    )


def kind_of_page(page: str) -> str:
    """In which group of results a page stands: ``e`` errors, ``l`` lessons, ``r`` reference, ``i`` an index of other pages.

    >>> [kind_of_page(page) for page in ("gallery/errors/leaf_in_place", "guide/which-switch", "then-and-now", "guide/index")]
    ['e', 'l', 'r', 'i']
    """
    if page.rpartition("/")[2] == "index" or page in (NAMES, PAGE):
        return "i"
    chapter = page.split("/")[:-1]
    if chapter == ["gallery", "errors"]:
        return "e"
    return "l" if chapter[:1] in (["gallery"], ["guide"]) else "r"


def make_index(
    pages: Mapping[str, Found], questions: Mapping[str, list[str]], address: Callable[[str], str]
) -> dict[str, Any]:
    """The index of these pages, by name.

    :param questions: of pages, by name.
    :param address: turns the name of a page into its address below the site's root.
    """
    names = sorted(pages.keys() - {PAGE})
    site = [pages[name] for name in names]
    asked = [{"questions": Counter(split_words(" ".join(questions.get(name, []))))} for name in names]
    found = weigh_words([page.fields | own for page, own in zip(site, asked, strict=True)])
    said = mark_sentences([*page.symptoms, *questions.get(name, [])] for name, page in zip(names, site, strict=True))
    vocabulary = sorted(found)
    headings = Counter(title for page in site for _anchor, title in page.sections)
    often = {title for title, times in headings.items() if times >= _OFTEN}
    parts = [[part for part in page.sections if part[1] not in often] for page in site]
    shortened = [[[name] if make_anchor(name) == anchor else [name, anchor] for anchor, name in own] for own in parts]
    return {
        "pages": [
            [address(name), page.title, _cut_snippet(page.lead), kind_of_page(name), own]
            for name, page, own in zip(names, site, shortened, strict=True)
        ],
        "words": encode_words(vocabulary),
        "found": "".join(f"{encode_pages(found[word])} " for word in vocabulary),
        "levels": "".join(f"{found[word][on]}{said[word, on]}" for word in vocabulary for on in sorted(found[word])),
        "patterns": PATTERNS,
        "stems": STEMS,
        "dropped": " ".join(sorted(DROPPED)),
        "weak": " ".join(sorted(WEAK)),
        "synonyms": read_synonyms(headings),
        "messages": order_messages(zip(site, parts, strict=True)),
        "rows": {number: page.row_anchor for number, page in enumerate(site) if page.row_anchor},
        "begin": [names.index(name) for name in read_pages().begin if name in names],
        "fixes": {number: page.fix for number, page in enumerate(site) if page.fix},
        "said": {
            "search": "Search",
            "hint": "A question, a name, or a whole traceback",
            "close": "Close",
            "begin": "Begin here",
            "card": "This message",
            "sibling": "This message is raised on",
            "fix": "Fix:",
            "kinds": {"e": "Errors", "l": "Lessons", "r": "Reference", "i": "Lists"},
            "none": "No page has these words.",
            "unknown": "No page has this message.",
            "count": "{count} results",
            "nearest": "Perhaps you were looking for one of these:",
        },
    }


def make_anchor(title: str) -> str:
    """The anchor that a heading has in the usual way. The browser makes it too (``slug`` in search_engine.js).

    >>> make_anchor("Why is .grad None?")
    'why-is-grad-none'
    """
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")


def _cut_snippet(lead: str) -> str:
    """The beginning of a text, in whole words; a first word that is longer, as Chinese has it, is cut.

    >>> _cut_snippet("计算图" * 40) == "计算图" * 31 + "计算 …"
    True
    """
    if len(lead) <= SNIPPET:
        return lead
    end = lead.rfind(" ", 0, SNIPPET)
    return lead[: end if end > 0 else SNIPPET] + " …"
