"""What the search knows of all pages, as data: ``search-index.js`` has it, which the browser loads when somebody searches.

How much a page is about a word is BM25F [1]_, with the fields of ``_FIELDS``, in ``LEVELS`` steps. The rarity of a word
is counted in the browser. The words are sorted; of each only what differs from the word before is written, after the
number of letters that both begin with. Numbers are digits of base 36.

``search_engine.js`` takes a word for each space in ``words`` and a list of pages for each space in ``found``: the distance from
page to page, above 35 with a capital letter before it that counts the 36s. ``levels`` has a digit for each page in ``found``.

The file grows with the pages: about 0.5 KiB each, compressed. At some thousand pages it should be cut by chapter.

.. [1] S. Robertson, H. Zaragoza, M. Taylor: Simple BM25 extension to multiple weighted fields. CIKM 2004.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

from docutils import nodes

from .names import INDEX as NAMES
from .pages import read_pages
from .toolbox import first_sentences, one_line

# -- Words ----------------------------------------------------------------------------------------

# Text as the words of an index: whole names and their parts, each reduced to a stem; and words that mean the same.
# ``conf/static/search_engine.js`` does the same with a question; ``tests/browser/test_search.py`` holds the two together.
# The stemmer is short on purpose: both languages must agree on it, and a stem that is wrong on both sides still finds its page.

_SYNONYMS = Path(__file__).with_name("synonyms.toml")
QUESTIONS = "questions.toml"  # in examples/
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


def read_questions(file: Path) -> dict[str, list[str]]:
    """What people ask whom a page answers, in their words, by the name of the page. They stand nowhere on the site."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


# -- Messages -------------------------------------------------------------------------------------

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


# -- The index ------------------------------------------------------------------------------------

PAGE = "search"  # it lists all others, so it is not in the index itself
SNIPPET = 95  # characters that a result shows of a page
COMMON = 0.5  # of the pages: a word that so many have, and none in more than its text, finds nothing
LEVELS = 6
SATURATION = 3.0
#: A page that has little of a word (up to 1) is left out where so many pages have it: others will be found for it.
_LITTLE = ((0.22, 4), (0.33, 12))
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
    :ivar messages: what the page's code raises.
    :ivar wordings: how other versions word the message that a page about an error explains.
    :ivar fix: what to do, of a page about an error.
    :ivar fields: the words of each part of the page, and how often each is there.
    """

    title: str
    lead: str
    symptoms: list[str]
    row_anchor: str
    sections: list[tuple[str, str]]
    messages: list[str]
    wordings: list[str]
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
                only_text[word] = only_text.get(word, True) and name in ("body", "used")
    found = {}
    for word, of_word in raw.items():
        if only_text[word] and len(of_word) > COMMON * len(site):
            continue
        share = {number: weight / (SATURATION + weight) for number, weight in of_word.items()}
        least = max((least for least, pages in _LITTLE if len(of_word) > pages), default=0)
        found[word] = {number: ceil(LEVELS * much) for number, much in share.items() if much >= least}
    return {word: of_word for word, of_word in found.items() if of_word}


def encode_pages(of_word: Iterable[int]) -> str:
    """The pages of a word, in order.

    >>> encode_pages({0, 2, 40})
    '02A2'
    """
    steps = [later - earlier for earlier, later in pairwise([0, *sorted(of_word)])]
    return "".join((chr(ord("A") - 1 + step // 36) if step >= 36 else "") + _DIGITS[step % 36] for step in steps)


def encode_words(vocabulary: list[str]) -> str:
    """Sorted words, each as what differs from the one before.

    >>> encode_words(["grad", "gradcheck", "gradient", "leaf"])
    '0grad 4check 4ient 0leaf'
    """
    shared = (_count_same_letters(one, other) for one, other in pairwise(["", *vocabulary]))
    return " ".join(
        _DIGITS[min(same, 35)] + word[min(same, 35) :] for same, word in zip(shared, vocabulary, strict=True)
    )


def _count_same_letters(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


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
    asked = [questions.get(name, []) for name in names]
    found = weigh_words(
        [
            page.fields | {"questions": Counter(split_words(" ".join(said)))}
            for page, said in zip(site, asked, strict=True)
        ]
    )
    vocabulary = sorted(found)
    headings = Counter(title for page in site for _anchor, title in page.sections)
    often = {title for title, times in headings.items() if times >= _OFTEN}
    return {
        "pages": [
            [address(name), page.title, _cut_snippet(page.lead), kind_of_page(name), _list_sections(page, often)]
            for name, page in zip(names, site, strict=True)
        ],
        "words": encode_words(vocabulary),
        "found": " ".join(encode_pages(found[word]) for word in vocabulary),
        "levels": "".join(str(found[word][number]) for word in vocabulary for number in sorted(found[word])),
        "dropped": " ".join(sorted(DROPPED)),
        "weak": " ".join(sorted({stem_word(word) for word in WEAK})),
        "synonyms": read_synonyms(),
        "messages": order_messages((page.title, page.messages, page.wordings, page.fix) for page in site),
        "symptoms": _number_symptoms(site, vocabulary),
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
            "count": "{count} results",
            "nearest": "Perhaps you were looking for one of these:",
        },
    }


def _list_sections(page: Found, often: set[str]) -> list[list[str]]:
    """The titles of a page's parts, each with its anchor if that is not made of the title in the usual way."""
    return [
        [title] if make_anchor(title) == anchor else [title, anchor]
        for anchor, title in page.sections
        if title not in often
    ]


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


def _number_symptoms(site: list[Found], vocabulary: list[str]) -> list[list[int]]:
    """Of each symptom the number of its page, and its words as numbers in the vocabulary."""
    number_of = {word: number for number, word in enumerate(vocabulary)}
    return [
        [page, *sorted({number_of[word] for word in split_words(symptom) if word in number_of})]
        for page, found in enumerate(site)
        for symptom in found.symptoms
    ]
