"""What to read before a page: the earlier pages that its own *See also* names."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path

from sphinx.environment import BuildEnvironment

from .facts import Facts

MOST = 2


def before(env: BuildEnvironment, page: str, facts: Facts, order: Mapping[str, int]) -> list[str]:
    """At most two pages. The page just before it in the order of reading is named last, and only within a chapter:
    it comes before, and need not be needed.

    :param order: the place of each page of the gallery in the order of reading.
    """
    labels = env.get_domain("std").anonlabels
    found = [
        labels.get(to, ("",))[0] if kind == "ref" else posixpath.normpath(posixpath.join(f"/{page}", "..", to))[1:]
        for kind, to in facts.named
    ]
    earlier = [other for other in dict.fromkeys(found) if order.get(other, len(order)) < order[page]]
    last = [other for other in earlier if order[other] == order[page] - 1]
    chosen = [other for other in earlier if other not in last]
    return (chosen + [other for other in last if Path(other).parent == Path(page).parent])[:MOST]


def short(title: str) -> str:
    """The part of a title before its colon.

    >>> short("Leaf tensors: is_leaf, retain_grad() and .grad"), short("std::move")
    ('Leaf tensors', 'std::move')
    """
    return title.partition(": ")[0]
