"""Which tests one process runs, where several share them: those of a file, and of the built site those of a page.

What one test prepares for others, a build or a visit, is then prepared once.
"""

from __future__ import annotations

import re
from random import Random

from xdist.scheduler import LoadScopeScheduling

#: The suites that ask the same of each page or example. Their tests are named for it.
OF_THE_SITE = ("site", "browser")
_PAGE = re.compile(rf"tests/(?:{'|'.join(OF_THE_SITE)})/\w+\.py::\w+\[(?P<page>[^\]\s]+?\.(?:html|py))[-\]]")


def together(nodeid: str) -> str:
    """What a test stays together with: the name of a page, or the path of a file."""
    found = _PAGE.match(nodeid)
    return found["page"] if found else nodeid.partition("::")[0]


def place(nodeid: str, seed: str) -> list[float]:
    """Where a test stands in a shuffled order, in which what stays together stands together."""
    return [Random(f"{seed} {name}").random() for name in (together(nodeid), nodeid)]


class Together(LoadScopeScheduling):
    """Gives a process that is free the next file, or the next page."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)
