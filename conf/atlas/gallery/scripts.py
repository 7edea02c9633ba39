"""The scripts of the gallery: which there are, which no page can be made of, and the two halves of one that needs a GPU."""

from __future__ import annotations

import ast
import os
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from atlas.toolbox import find_wrong_encoding, one_line

#: The file that makes a folder of examples a chapter.
HEADER = "GALLERY_HEADER.rst"
#: What parts the halves on a page; in a script it stands in a comment. What stands before it runs in every build. What stands
#: after it runs only where there is a GPU: elsewhere a recording of it is shown, or its code without outputs.
MARK = ".. needs-a-gpu::"

_MARK = re.compile(rf"^(# |){re.escape(MARK)}[ \t]*$", re.MULTILINE)
_TIME_LIMIT = re.compile(r"^# sphinx_gallery_time_limit\b(?:[ \t]*=[ \t]*(\d+(?:\.\d+)?)[ \t]*$)?", re.MULTILINE)
_DOCSTRING = re.compile(r"\A\ufeff?(?:\s*#.*\n)*\s*[rR]?(\"\"\"|''')(.*?)\1", re.DOTALL)


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

    @property
    def recording(self) -> Path:
        """The folder of what a machine with a GPU has recorded of it."""
        return self.script.parent / "recordings" / self.script.stem


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
    return [text.count("\n", 0, found.start()) + 1 for found in _MARK.finditer(text) if found[1]]


def split_at_mark(text: str) -> tuple[str, str]:
    """What of a script or of a page runs in every build, and what needs a GPU; without a mark, nothing does."""
    found = _MARK.search(text)
    return (text[: found.start()], text[found.end() :]) if found else (text, "")


def read_title(text: str) -> str:
    """The title in a script's docstring: its first line that says something; empty if there is none.

    >>> read_title('\"\"\"\\n=====\\nTitle\\n=====\\n\"\"\"')
    'Title'
    """
    docstring = _DOCSTRING.match(text)
    lines = docstring[2].splitlines() if docstring else []
    said = (line for line in lines if re.search(r"\w", line) and not line.startswith((".. ", " ")))
    return one_line(next(said, ""))


def can_be_listed(script: Path) -> bool:
    """Whether sphinx-gallery can make a page of a script that failed: it needs a title, and reads UTF-8 alone."""
    return bool(read_title(read_script(script))) and not find_wrong_encoding(script)


def find_time_limit(text: str) -> tuple[float, int]:
    """What a script asks for with ``# sphinx_gallery_time_limit = SECONDS``, and in which line; 0 if it does not."""
    found = _TIME_LIMIT.search(text)
    return (float(found[1] or 0), text.count("\n", 0, found.start()) + 1) if found else (0.0, 0)


def check_scripts(examples: Path) -> None:
    """See that each script below the examples becomes a page, and that sphinx-gallery can read the head of each chapter.

    :raises ScriptError: if one does not.
    """
    wrong = [fault for head in sorted(examples.rglob(HEADER)) if (fault := find_wrong_encoding(head))]
    for script in sorted(examples.rglob("*.py")):
        path = script.relative_to(examples)
        hidden = any(part.startswith(".") for part in path.parts[:-1])  # a copy that an editor keeps
        if not hidden and (fault := _find_fault(script, len(path.parts))):
            wrong.append(f"{examples.name}/{path.as_posix()}: {fault}")
    if wrong:
        raise ScriptError("\n".join(wrong))


def _find_fault(script: Path, depth: int) -> str:
    if depth != 2 or not (script.parent / HEADER).is_file():
        return f"the script is in no chapter; move it into the folder of one, which has a {HEADER}"
    if not re.fullmatch(r"[A-Za-z]\w*", script.stem, re.ASCII):
        return "this is no name for a page; use letters from a to z, digits and underscores, and begin with a letter"
    if len(find_marks(read_script(script))) > 1:
        return f"the script has several lines '# {MARK}'; one parts what runs everywhere from what needs a GPU"
    return ""


# -- What went wrong in a script, with the file and the line -------------------------------------


class PageFault(Exception):
    """What no page can be made of; the message names file and line, and the way out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an example has no page. ``line`` is 0 when the script was not reached."""

    script: str
    line: int
    message: str
    details: str = ""
    """A traceback, or the end of what the script printed."""

    def make_headline(self) -> str:
        """
        >>> Fault("examples/graphs/page.py", 12, "ValueError: no").make_headline()
        'examples/graphs/page.py:12: ValueError: no'
        """
        return f"{self.script}:{self.line}: {self.message}" if self.line else f"{self.script}: {self.message}"

    def make_report(self) -> str:
        """The headline, with the details below it."""
        return "\n    ".join([self.make_headline(), *self.details.splitlines()])


def check_source(script: Path) -> None:
    """See that sphinx-gallery can read a script.

    :raises PageFault, SyntaxError: if it cannot.
    """
    content = script.read_bytes()
    if content.startswith(b"\xef\xbb\xbf"):
        raise PageFault(f"{script}:1: the file begins with a byte order mark; save it as UTF-8 without BOM")
    if fault := find_wrong_encoding(script):
        raise PageFault(fault)
    text = content.decode()
    ast.parse(text, str(script))
    if not read_title(text):
        raise PageFault(f'{script}:1: a page begins with a docstring, """...""", and the docstring with its title')
    seconds, line = find_time_limit(text)
    if line and not seconds:
        raise PageFault(f"{script}:{line}: this is no time limit; write a positive number of seconds, such as 120")


def explain_error(error: BaseException, script: Path, running_line: int) -> Fault:
    """The fault to report for an exception that the script raised.

    :param running_line: the line of the script that ran last, for an exception whose traceback does not name one.
    """
    message = "".join(traceback.format_exception_only(error)).strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(script)]
    line, details = (frames[-1].lineno or 0) if frames else running_line, "".join(traceback.format_list(frames))
    if isinstance(error, SyntaxError) and error.filename == str(script):
        line, message = error.lineno or 0, f"{type(error).__name__}: {error.msg}"
        details = (error.text or "").rstrip()
    elif isinstance(error, SystemExit):
        message = f"the script ended itself with sys.exit({error.code!r}); a page runs to its end"
    elif found := re.match(rf"(?:[\w.]+: )?{re.escape(str(script))}:(\d+): (.*)", message, re.DOTALL):
        line, message, details = int(found[1]), found[2], ""
    elif isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        message = f"the script needs more memory than a page may take: {message}"
    return Fault(str(script), line, message, details)
