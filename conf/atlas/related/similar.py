"""Pages that are like a page: they use the same names of PyTorch, and few others use those.

sphinx-gallery's recommender was tried. It counts all words of a script, also those of checks that are hidden,
knows nothing of what a page links to already, and puts a picture of each page that it finds on the page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping

MOST = 3
# Chosen by looking at what they find on this site: one name in common is a coincidence, however rare it is.
LEAST = 0.22
MOST_OF_ONE_NAME = 0.15
_SPOKEN = 2  # a name that the text speaks of, too, says more of what a page is about


def vectors(
    used: Mapping[str, Collection[str]], spoken: Mapping[str, Collection[str]]
) -> dict[str, dict[str, float]]:
    """What each page is about, as a direction: its names, each with the more weight, the fewer pages use it. Length 1."""
    counts = Counter(name for names in used.values() for name in names)
    pages = sum(map(bool, used.values()))
    found = {}
    for page, names in used.items():
        about = {
            name: math.log(pages / counts[name]) * (_SPOKEN if name in spoken.get(page, ()) else 1)
            for name in sorted(names)
            if 1 < counts[name] <= pages / 2
        }
        length = math.sqrt(sum(weight**2 for weight in about.values()))
        found[page] = {name: weight / length for name, weight in about.items()} if length else {}
    return found


def nearest(page: str, about: Mapping[str, Mapping[str, float]], among: Collection[str]) -> list[str]:
    """The pages ``among`` those given that are most like a page, the most like it first; of equals, the first by name.

    >>> about = vectors({"a": ["sin", "cos"], "b": ["cos", "sin"], "c": ["exp"], "d": ["exp"], "e": []}, {})
    >>> nearest("a", about, ["c", "b", "d", "e"]), nearest("c", about, ["a", "b"])
    (['b'], [])
    """
    own = about.get(page, {})
    # rounded: the last digits depend on the order of a sum, and must not decide
    likeness = {
        other: round(
            sum(min(weight * about[other].get(name, 0), MOST_OF_ONE_NAME) for name, weight in own.items()), 6
        )
        for other in among
        if other in about and other != page
    }
    order = sorted(likeness, key=lambda other: (-likeness[other], other))
    return [other for other in order if likeness[other] >= LEAST][:MOST]
