"""The two halves of a page that needs a GPU: what can be known on paper, and what must be measured.

A line ``# .. needs-a-gpu::`` in the script's text parts them. What stands before it runs in every build. What stands after it
runs only where there is a GPU: elsewhere a recording of it is shown, or its code without outputs.
"""

from __future__ import annotations

import re

MARK = ".. needs-a-gpu::"
"""What parts the halves, on the page; in a script it stands in a comment."""

_IN_SCRIPT = re.compile(rf"^# {re.escape(MARK)}[ \t]*$", re.MULTILINE)
ON_PAGE = re.compile(rf"^{re.escape(MARK)}[ \t]*$", re.MULTILINE)


def marks(script: str) -> list[int]:
    """The numbers of the lines of a script that part its halves: one, or none if nothing in it needs a GPU.

    >>> marks("import torch\\n\\n# %%\\n# Measured\\n# --------\\n# .. needs-a-gpu::\\n")
    [6]
    """
    return [script.count("\n", 0, found.start()) + 1 for found in _IN_SCRIPT.finditer(script)]


def of_script(script: str) -> tuple[str, str]:
    """What of a script runs in every build, and what needs a GPU."""
    return _parted(_IN_SCRIPT, script)


def of_page(rst: str) -> tuple[str, str]:
    """What of a page stands before the mark, and what after it; without a mark, nothing stands after it."""
    return _parted(ON_PAGE, rst)


def _parted(mark: re.Pattern[str], text: str) -> tuple[str, str]:
    found = mark.search(text)
    return (text[: found.start()], text[found.end() :]) if found else (text, "")
