"""What went wrong in an example, with the file, the line and the cell."""

from __future__ import annotations

import ast
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from .requests import PageFault
from .scripts import DOCSTRING, read_script, read_time_limit, read_title

#: A text block, as sphinx-gallery finds it, also in a script that Python cannot read.
_TEXT = re.compile(r"(?:^#{20,}.*|^# ?%%.*)\s(?:^#.*\s?)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an example has no page. ``line`` is 0 when the script was not reached."""

    script: str
    line: int
    message: str
    details: str = ""
    """A traceback, or the end of what the script printed."""
    cell: int | None = None
    """Which code cell the line is in, counted from 1."""

    def make_headline(self) -> str:
        """
        >>> Fault("examples/graphs/page.py", 12, "ValueError: no", cell=3).make_headline()
        'examples/graphs/page.py:12: cell 3: ValueError: no'
        """
        where = f"{self.script}:{self.line}" if self.line else self.script
        return f"{where}: cell {self.cell}: {self.message}" if self.cell else f"{where}: {self.message}"

    def make_report(self) -> str:
        """The headline, with the details below it."""
        return "\n".join([self.make_headline(), *(f"    {line}" for line in self.details.splitlines())])


class UnfinishedExample(BaseException):
    """Raised inside an example to end it: it has printed too much. Not an Exception, so that the example does not catch it."""


def check_source(script: Path) -> None:
    """See that sphinx-gallery can read a script.

    :raises PageFault, SyntaxError: if it cannot.
    """
    content = script.read_bytes()
    if content.startswith(b"\xef\xbb\xbf"):
        raise PageFault(f"{script}:1: the file begins with a byte order mark; save it as UTF-8 without BOM")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise PageFault(f"{script}:{line}: the file is not UTF-8: {error.reason}; save it as UTF-8") from None
    ast.parse(text, str(script))
    if not read_title(text):
        raise PageFault(f'{script}:1: a page begins with a docstring, """...""", and the docstring with its title')
    try:
        read_time_limit(text)
    except ValueError as error:
        raise PageFault(
            f"{script}:{error}: this is no time limit; write a positive number of seconds, such as 120"
        ) from None


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
    elif isinstance(error, UnfinishedExample):
        message = str(error)
    elif found := re.match(rf"(?:[\w.]+: )?{re.escape(str(script))}:(\d+): (.*)", message, re.DOTALL):
        line, message, details = int(found[1]), found[2], ""
    elif isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        message = f"the script needs more memory than a page may take: {message}"
    return Fault(str(script), line, message, details, find_cell(script, line))


def find_cell(script: Path, line: int) -> int | None:
    """Which code cell of the script a line is in, counted from 1; None if it is in none. The script need not be Python."""
    text = read_script(script)
    docstring = DOCSTRING.match(text)
    texts = list(_TEXT.finditer(text, docstring.end() if docstring else 0))
    begins = [docstring.end() if docstring else 0, *(found.end() for found in texts)]
    ends = [*(found.start() for found in texts), len(text)]
    cells = [(begin, end) for begin, end in zip(begins, ends, strict=True) if text[begin:end].strip()]
    for number, (begin, end) in enumerate(cells, 1):
        if text.count("\n", 0, begin) < line <= text.count("\n", 0, end) + (end == len(text)):
            return number
    return None
