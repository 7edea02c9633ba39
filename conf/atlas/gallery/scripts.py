"""The scripts of the gallery: which there are, which no page can be made of, and the two halves of one that needs a GPU."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from atlas.toolbox import one_line

#: The file that makes a folder of examples a chapter.
HEADER = "GALLERY_HEADER.rst"
#: What parts the halves on a page; in a script it stands in a comment. What stands before it runs in every build. What stands
#: after it runs only where there is a GPU: elsewhere a recording of it is shown, or its code without outputs.
MARK = ".. needs-a-gpu::"

_MARK_IN_SCRIPT = re.compile(rf"^# {re.escape(MARK)}[ \t]*$", re.MULTILINE)
_MARK_ON_PAGE = re.compile(rf"^{re.escape(MARK)}[ \t]*$", re.MULTILINE)
_TIME_LIMIT = re.compile(r"^# sphinx_gallery_time_limit\b(?:[ \t]*=[ \t]*(\d+(?:\.\d+)?)[ \t]*$)?", re.MULTILINE)
DOCSTRING = re.compile(r"\A\ufeff?(?:\s*#.*\n)*\s*[rR]?(\"\"\"|''')(.*?)\1", re.DOTALL)


class ScriptError(Exception):
    """Scripts that no page can be made of; the message names each, and the way out."""


@dataclass(frozen=True, slots=True)
class Page:
    """One example: where its script is, and where its outputs go."""

    script: Path
    cache: Path
    """The chapter's folder in sphinx-gallery's cache."""

    @property
    def name(self) -> str:
        """
        >>> Page(Path("examples/graphs/first_graph.py"), Path("docs/gallery/graphs")).name
        'graphs/first_graph'
        """
        return f"{self.script.parent.name}/{self.script.stem}"

    @property
    def receipt(self) -> Path:
        return self.cache / f"{self.script.stem}.receipt.json"


def find_pages(examples: Path, cache: Path) -> list[Page]:
    """The examples of all chapters. As for sphinx-gallery, a chapter is a folder with a header."""
    chapters = sorted(header.parent for header in examples.glob(f"*/{HEADER}"))
    return [Page(path, cache / folder.name) for folder in chapters for path in sorted(folder.glob("*.py"))]


def may_have_gpu() -> bool:
    """Whether there is a device of NVIDIA's driver, on Linux or in WSL. Only PyTorch knows whether it works."""
    return any(os.path.exists(device) for device in ("/dev/nvidiactl", "/dev/dxg"))


def read_script(script: Path) -> str:
    """The text of a script, for those who look for something in it: bytes that are no UTF-8 are no fault here."""
    return script.read_text(encoding="utf-8", errors="replace")


def find_marks(text: str) -> list[int]:
    """The numbers of the lines of a script that part its halves: one, or none if nothing in it needs a GPU.

    >>> find_marks("import torch\\n\\n# %%\\n# Measured\\n# --------\\n# .. needs-a-gpu::\\n")
    [6]
    """
    return [text.count("\n", 0, found.start()) + 1 for found in _MARK_IN_SCRIPT.finditer(text)]


def split_script(text: str) -> tuple[str, str]:
    """What of a script runs in every build, and what needs a GPU."""
    return _split_at(_MARK_IN_SCRIPT, text)


def split_page(rst: str) -> tuple[str, str]:
    """What of a page stands before the mark, and what after it; without a mark, nothing stands after it."""
    return _split_at(_MARK_ON_PAGE, rst)


def _split_at(mark: re.Pattern[str], text: str) -> tuple[str, str]:
    found = mark.search(text)
    return (text[: found.start()], text[found.end() :]) if found else (text, "")


def read_title(text: str) -> str:
    """The title in a script's docstring: its first line that says something; empty if there is none.

    >>> read_title('\"\"\"\\n=====\\nTitle\\n=====\\n\"\"\"')
    'Title'
    """
    docstring = DOCSTRING.match(text)
    lines = docstring[2].splitlines() if docstring else []
    said = (line for line in lines if re.search(r"\w", line) and not line.startswith((".. ", " ")))
    return one_line(next(said, ""))


def read_time_limit(text: str) -> float:
    """How many seconds a script asks for with ``# sphinx_gallery_time_limit = SECONDS``; 0 if it does not.

    :raises ValueError: if it does not say how many; the message is the number of the line.
    """
    found = _TIME_LIMIT.search(text)
    if found and not (found[1] and float(found[1])):
        raise ValueError(text.count("\n", 0, found.start()) + 1)
    return float(found[1]) if found else 0.0


def check_scripts(examples: Path) -> None:
    """See that each script below the examples becomes a page.

    :raises ScriptError: if one does not.
    """
    wrong = []
    for script in sorted(examples.rglob("*.py")):
        path = script.relative_to(examples)
        hidden = any(part.startswith(".") for part in path.parts[:-1])  # a copy that an editor keeps
        if not hidden and (fault := _find_fault(script, len(path.parts))):
            wrong.append(f"{examples.name}/{path.as_posix()}: {fault}")
    if wrong:
        raise ScriptError("\n".join(wrong))


def _find_fault(script: Path, depth: int) -> str:
    if depth == 1:
        return "the script is in no chapter; move it into the folder of one"
    if depth > 2:
        return "the script is in a folder below its chapter; move it into the chapter itself"
    if not (script.parent / HEADER).is_file():
        return f"the script is in a folder that is no chapter; add a {HEADER} there, or move it into a chapter"
    if not re.fullmatch(r"[A-Za-z]\w*", script.stem, re.ASCII):
        return "this is no name for a page; use letters from a to z, digits and underscores, and begin with a letter"
    if len(find_marks(read_script(script))) > 1:
        return f"the script has several lines '# {MARK}'; one parts what runs everywhere from what needs a GPU"
    return ""
