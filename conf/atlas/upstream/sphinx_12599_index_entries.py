"""Keep the index entries of all pages in the search, not only of those that this build writes.

Sphinx reads its search index again before it writes changed pages, and forgets in that what ``.. index::`` says on the others:
a symptom that a page names would no longer lead to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.index_entries import split_index_msg


def remember(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """Give Sphinx the entries of all pages, as it collects them itself from a page that it writes.

    Connected to ``env-updated``; it asks for no page to be written.
    """
    remembered = env._search_index_index_entries  # the very dictionary that the search's builder goes on with
    remembered.clear()
    # in one order, whichever of several processes read a page first
    for page, entries in sorted(env.domains.index_domain.entries.items()):
        found = set()
        for kind, value, target, main, _category in entries:
            with contextlib.suppress(ValueError):
                words = split_index_msg(kind, value)
                found |= {(word, target or "", main) for word in words}
        remembered[page] = sorted(found)
    return []


def setup(app: Sphinx) -> None:
    app.connect("env-updated", remember)
