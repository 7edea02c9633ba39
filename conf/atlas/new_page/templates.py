"""The script of a new page: a lesson, a lesson with a half that needs a GPU, or a page about an error.

Each runs as it is, and has all parts that the tests ask for. What its author must replace begins with "To write:".
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
LESSON, MEASURED, ERROR = "lesson", "measured", "error"
_LAST_SECTION = "# %%\n# See also\n"
_MARKUP = re.compile(r"[\\*`|]|_(?!\w)")  # what reStructuredText would take for its own


def text(name: str) -> str:
    """A template, with the names of what goes into it in braces."""
    return (HERE / f"{name}.py.txt").read_text(encoding="utf-8")


def script(chapter: str, page: str, title: str, neighbors: str) -> str:
    """The script of a new page.

    :param neighbors: its links to the pages before and after it, as lines of *See also*.
    """
    made = text(ERROR if chapter == "errors" else LESSON)
    if chapter == "cuda":
        made = made.replace(_LAST_SECTION, text(MEASURED) + _LAST_SECTION)
        made = made.replace("import torch\n", "import sys\n\nimport torch\n", 1)
    heading = in_rst(title)
    parts = {
        "title": heading,
        "line": "=" * len(heading),
        "page": page,
        "message": in_python(title),
        "neighbors": neighbors,
    }
    return re.sub(r"\{(\w+)\}", lambda slot: parts[slot[1]], made)


def in_rst(title: str) -> str:
    r"""A title as a line of reStructuredText that shows it word for word.

    >>> print(in_rst("grad_fn of x_ is `None` * 2"))
    grad_fn of x\_ is \`None\` \* 2
    """
    return _MARKUP.sub(r"\\\g<0>", title)


def in_python(title: str) -> str:
    r"""A title as a string of Python, in the quotes that ruff chooses.

    >>> print(in_python("it's"), in_python('a "b" and c'))
    "it's" 'a "b" and c'
    """
    quote = "'" if title.count('"') > title.count("'") else '"'
    return quote + title.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote
