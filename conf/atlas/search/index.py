"""``search-index.js``: every page of the site in one file, which the browser loads when somebody begins to search.

How much a page is about a word is BM25F [1]_, with the fields of ``_FIELDS``, in ``LEVELS`` steps. The rarity of a word
is counted in the browser. The words are sorted; of each only what differs from the word before is written, after the
number of letters that both begin with. Numbers are digits of base 36.

``search_engine.js`` takes a word for each space in ``words`` and a list of pages for each space in ``found``: the distance from
page to page, above 35 with a capital letter before it that counts the 36s. ``levels`` has a digit for each page in ``found``.

The file grows with the pages: about 0.4 KiB each, compressed. At some thousand pages it should be cut by chapter: the loader
in ``conf/static/search_box.js`` is the one place that knows its name.

It is a script and not JSON, so that it loads from a folder too, where a browser refuses to fetch.

.. [1] S. Robertson, H. Zaragoza, M. Taylor: Simple BM25 extension to multiple weighted fields. CIKM 2004.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from atlas.names_index.directive import INDEX as NAMES
from atlas.toolbox import write_whole

from .gather import Found, pages
from .synonyms import SYNONYMS
from .words import DROPPED, WEAK, stem, words

FILE = "search-index.js"
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
class _Field:
    """How much a word in a field counts, and how much less in a field that is longer than others (0 to 1)."""

    weight: float
    length: float
    repeats: bool = False


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_FIELDS = {
    "title": _Field(9, 0.3),
    "symptoms": _Field(7, 0.1),
    "entries": _Field(6, 0.1),
    "rows": _Field(9, 0),
    "sections": _Field(3, 0.4),
    "lead": _Field(3, 0.4),
    "messages": _Field(2, 0.4),
    "spoken": _Field(3, 0.2),
    "used": _Field(0.5, 0.3),
    "body": _Field(1, 0.7, repeats=True),
}


def weights(site: list[dict[str, Counter[str]]]) -> dict[str, dict[int, int]]:
    """For each word the pages that have it, by number, with a weight from 1 to ``LEVELS``.

    :param site: of each page the words of its fields, and how often each is there.

    >>> leaf, graph = Counter(["leaf"]), Counter(["graph"])
    >>> site = [{"title": leaf, "body": leaf + graph}, {"title": graph, "body": graph}]
    >>> found = weights([dict.fromkeys(_FIELDS, Counter()) | page for page in site])
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


def encode(of_word: Iterable[int]) -> str:
    """The pages of a word, in order.

    >>> encode({0, 2, 40})
    '02A2'
    """
    steps = [later - earlier for earlier, later in pairwise([0, *sorted(of_word)])]
    return "".join((chr(ord("A") - 1 + step // 36) if step >= 36 else "") + _DIGITS[step % 36] for step in steps)


def front_coded(vocabulary: list[str]) -> str:
    """Sorted words, each as what differs from the one before.

    >>> front_coded(["grad", "gradcheck", "gradient", "leaf"])
    '0grad 4check 4ient 0leaf'
    """
    shared = (_same_letters(one, other) for one, other in pairwise(["", *vocabulary]))
    return " ".join(
        _DIGITS[min(same, 35)] + word[min(same, 35) :] for same, word in zip(shared, vocabulary, strict=True)
    )


def _same_letters(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def kind(page: str) -> str:
    """In which group of results a page stands: ``e`` errors, ``l`` lessons, ``r`` reference, ``i`` an index of other pages.

    >>> [kind(page) for page in ("gallery/errors/leaf_in_place", "guide/which-switch", "then-and-now", "gallery/errors/index")]
    ['e', 'l', 'r', 'i']
    """
    if page.rpartition("/")[2] == "index" or page in (NAMES, PAGE):
        return "i"
    chapter = page.split("/")[:-1]
    if chapter == ["gallery", "errors"]:
        return "e"
    return "l" if chapter[:1] in (["gallery"], ["guide"]) else "r"


def index(env: BuildEnvironment, address: Any) -> dict[str, Any]:
    """The index as data. ``address`` turns the name of a page into its address below the site's root."""
    names = sorted(pages(env).keys() - {PAGE})
    site = [pages(env)[name] for name in names]
    found = weights([page.fields for page in site])
    vocabulary = sorted(found)
    headings = Counter(title for page in site for _anchor, title in page.sections)
    often = {title for title, pages in headings.items() if pages >= _OFTEN}
    return {
        "pages": [
            [address(name), page.title, _snippet(page.lead), kind(name), _sections(page, often)]
            for name, page in zip(names, site, strict=True)
        ],
        "words": front_coded(vocabulary),
        "found": " ".join(encode(found[word]) for word in vocabulary),
        "levels": "".join(str(found[word][number]) for word in vocabulary for number in sorted(found[word])),
        "dropped": " ".join(sorted(DROPPED)),
        "weak": " ".join(sorted({stem(word) for word in WEAK})),
        "synonyms": {stem(word): list(dict.fromkeys(words(others))) for word, others in SYNONYMS.items()},
        "messages": _messages(site),
        "symptoms": _symptoms(site, vocabulary),
        "rows": {number: page.row_anchor for number, page in enumerate(site) if page.row_anchor},
        "fixes": {number: page.fix for number, page in enumerate(site) if page.fix},
        "said": {
            "search": "Search",
            "hint": "A question, a name, or a whole traceback",
            "close": "Close",
            "card": "This message",
            "sibling": "This message is raised on",
            "fix": "Fix:",
            "kinds": {"e": "Errors", "l": "Lessons", "r": "Reference", "i": "Lists"},
            "none": "Nothing on this site has these words.",
            "count": "{count} results",
            "nearest": "Perhaps you were looking for one of these:",
        },
    }


def _sections(page: Found, often: set[str]) -> list[list[str]]:
    """The titles of a page's parts, each with its anchor if that is not made of the title in the usual way."""
    return [
        [title] if anchor_of(title) == anchor else [title, anchor]
        for anchor, title in page.sections
        if title not in often
    ]


def anchor_of(title: str) -> str:
    """The anchor that a heading has in the usual way. The browser makes it too (``slug`` in search_engine.js).

    >>> anchor_of("Why is .grad None?")
    'why-is-grad-none'
    """
    return re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")


def _snippet(lead: str) -> str:
    """The beginning of a text, in whole words."""
    if len(lead) <= SNIPPET:
        return lead
    return lead[: lead.rindex(" ", 0, SNIPPET)] + " …"


def _symptoms(site: list[Found], vocabulary: list[str]) -> list[list[int]]:
    """Of each symptom the number of its page, and its words as numbers in the vocabulary."""
    number_of = {word: number for number, word in enumerate(vocabulary)}
    return [
        [page, *sorted({number_of[word] for word in words(symptom) if word in number_of})]
        for page, found in enumerate(site)
        for symptom in found.symptoms
    ]


def _messages(site: list[Found]) -> list[list[Any]]:
    """Messages with the number of their page, in the order in which the browser prefers one of two that are alike.

    A page about an error explains the message in its title, and the other wordings of it. A third item, 1, says of any other
    message that its page raises it and is about something else.
    """
    own, siblings = [], []
    for number, page in enumerate(site):
        said = dict.fromkeys(page.messages)
        whole = [
            one for one in said if not any(one != other and other.startswith(one.rstrip(". ")) for other in said)
        ]
        if page.fix:
            own += [[number, one] for one in dict.fromkeys([page.title, *page.wordings])]
            own += [[number, one] for one in whole if page.title.lower() in one.lower() and one != page.title]
        siblings += [[number, one, 1] for one in whole if not (page.fix and page.title.lower() in one.lower())]
    return own + sorted(siblings, key=lambda sibling: not site[sibling[0]].fix)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    data = json.dumps(index(app.env, app.builder.get_target_uri), ensure_ascii=False, separators=(",", ":"))
    write_whole(Path(app.outdir, FILE), f"window.atlasSearchIndex={data}\n")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
