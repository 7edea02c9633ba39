"""No page has code in an attribute: ``onclick="..."`` and ``javascript:`` addresses.

The Content-Security-Policy (`site_files.csp_conf`) blocks such code silently, so that its author would see nothing happen.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

# All pages are searched in every build. The pattern begins with letters and is for a page in lower case, as Python then looks
# for those letters first, and is done ten times as fast.
_LIKE_A_HANDLER = re.compile(r"on(?<=\son)[a-z]+\s*=")
_LIKE_AN_ADDRESS = "javascript:"
_ADDRESSES = {"href", "xlink:href", "src", "action", "formaction"}


def faults(page: str) -> list[str]:
    """The tags with code in an attribute, each as far as it tells where it is.

    >>> faults('<p>onto = 1</p><a class="x" onclick="go()" href="javascript:go()">')
    ['<a onclick="go()">', '<a href="javascript:go()">']
    """
    lower = page.lower()
    if _LIKE_AN_ADDRESS not in lower and not _LIKE_A_HANDLER.search(lower):
        return []
    tags = _Tags()
    tags.feed(page)
    return tags.faults


class _Tags(HTMLParser):
    """Reads tags exactly, which takes a hundred times as long as a search for what may be a fault."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            is_code = name in _ADDRESSES and (value or "").strip().lower().startswith("javascript:")
            if name.startswith("on") or is_code:
                self.faults.append(f'<{tag} {name}="{value or ""}">')
