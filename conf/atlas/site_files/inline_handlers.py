"""No page has code in an attribute: ``onclick="..."`` and ``javascript:`` addresses.

The Content-Security-Policy (`site_files.csp_conf`) blocks such code silently, so that its author would see nothing happen.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

# All pages are searched in every build, so what cannot be a fault must be passed over quickly. Each pattern begins with
# letters and is for a page in lower case: Python looks for those letters first, and is done ten times as fast.
_SUSPICIOUS = [
    re.compile(r"""on(?<=[\s/"']on)[a-z]+\s*="""),
    # browsers leave out tabs and newlines within an address
    re.compile(r"[\t\n\r]*".join("javascript:")),
    # a character reference in what may be the scheme of an address
    *(re.compile(rf"""{name}\s*=\s*["']?[^"'>&:/?#]*&""") for name in ("href", "src", "action")),
]
_ADDRESSES = {"href", "xlink:href", "src", "action", "formaction"}
_BEFORE_AN_ADDRESS = "".join(map(chr, range(0x21)))  # control characters and blanks, which browsers leave out
_WITHIN_AN_ADDRESS = str.maketrans("", "", "\t\n\r")


def faults(page: str) -> list[str]:
    """The tags with code in an attribute, each as far as it tells where it is.

    >>> faults('<p>onto = 1</p><a class="x" onclick="go()" href="javascript:go()">')
    ['<a onclick="go()">', '<a href="javascript:go()">']
    """
    lower = page.lower()
    if not any(pattern.search(lower) for pattern in _SUSPICIOUS):
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
            if name.startswith("on") or (name in _ADDRESSES and _is_code(value or "")):
                self.faults.append(f'<{tag} {name}="{value or ""}">')


def _is_code(address: str) -> bool:
    """Whether a browser takes the address for a script.

    >>> _is_code(" Java\\nScript:go()"), _is_code("page.html#javascript:")
    (True, False)
    """
    return address.translate(_WITHIN_AN_ADDRESS).lstrip(_BEFORE_AN_ADDRESS).lower().startswith("javascript:")
