"""Keep the ``.. index::`` entries of all pages in the search, also of those that a build does not write.

Works around https://github.com/sphinx-doc/sphinx/issues/12599: an incremental build drops the entries of unchanged pages from
searchindex.js, since ``IndexBuilder.load`` reads back everything but the index entries. Sphinx 9.0 has the bug, and the issue
is open. Delete this file when it is closed and that Sphinx is the one in requirements.txt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.index_entries import split_index_msg

from . import has_bug, warn_unknown


def fill_in(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """Give the index builder the entries of all pages, in the form in which it takes them from a page that is written.

    Connected to ``env-updated``; it asks for no page to be written.
    """
    if not hasattr(env, "_search_index_index_entries"):
        warn_unknown(
            "sphinx", "env._search_index_index_entries", "the search may forget index entries of unchanged pages"
        )
        return []
    kept = env._search_index_index_entries  # the index builder holds this very dictionary, so it is changed in place
    kept.clear()
    # sorted: with several processes, the order of reading differs from build to build
    for page, entries in sorted(env.domains.index_domain.entries.items()):
        found = set()
        for kind, value, target, main, _category in entries:
            with contextlib.suppress(ValueError):
                words = split_index_msg(kind, value)
                found |= {(word, target or "", main) for word in words}
        kept[page] = sorted(found)
    return []


def setup(app: Sphinx) -> None:
    if has_bug("sphinx", (9, 0)):
        app.connect("env-updated", fill_in)
