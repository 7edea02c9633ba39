"""What went wrong in an example, with the file, the line and the cell."""

from __future__ import annotations

import re
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from atlas.runner import sphinx_gallery_api


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

    def headline(self) -> str:
        """
        >>> Fault("examples/graphs/page.py", 12, "ValueError: no", cell=3).headline()
        'examples/graphs/page.py:12: cell 3: ValueError: no'
        """
        where = f"{self.script}:{self.line}" if self.line else self.script
        return f"{where}: cell {self.cell}: {self.message}" if self.cell else f"{where}: {self.message}"

    def report(self) -> str:
        """The headline, with the details below it."""
        return "\n".join([self.headline(), *(f"    {line}" for line in self.details.splitlines())])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class UnfinishedExample(BaseException):
    """Raised inside an example to end it: it has printed too much. Not an Exception, so that the example does not catch it."""


class LeftBehind(RuntimeError):
    """The example leaves files beside it."""


def from_exception(error: BaseException, script: Path, running_line: int) -> Fault:
    """The fault to report for an exception that the script raised.

    :param running_line: the line of the script that ran last, for an exception whose traceback does not name one.
    """
    message = "".join(traceback.format_exception_only(error)).strip()
    line = _line_of(error, script) or running_line
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(script)]
    details = "".join(traceback.format_list(frames))
    if isinstance(error, SystemExit):
        message = f"the script ended itself with sys.exit({error.code!r}); a page runs to its end"
    elif isinstance(error, UnfinishedExample):
        message = str(error)
    elif isinstance(error, UnicodeDecodeError):
        message = f"the file is not UTF-8: {error.reason}; save it as UTF-8"
    elif (own := re.match(rf"(?:[\w.]+: )?{re.escape(str(script))}:(\d+): (.*)", message, re.DOTALL)) is not None:
        message, details = own[2], ""
    return Fault(str(script), line, message, details, cell_of(script, line))


def _line_of(error: BaseException, script: Path) -> int:
    if isinstance(error, SyntaxError) and error.filename == str(script):
        return error.lineno or 0
    if isinstance(error, UnicodeDecodeError):
        return script.read_bytes()[: error.start].count(b"\n") + 1 if error.start else 1
    named = re.match(rf"{re.escape(str(script))}:(\d+): ", str(error))
    if named:
        return int(named[1])
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(script)]
    return (lines[-1] or 0) if lines else 0


def cell_of(script: Path, line: int) -> int | None:
    """Which code cell of the script a line is in, counted from 1; None if it is in none."""
    try:
        blocks = sphinx_gallery_api.blocks(script)
    except Exception:
        return None
    before = [(kind, first) for kind, _, first in blocks if first <= line]
    if not before or before[-1][0] != "code":
        return None
    return sum(kind == "code" for kind, _ in before)
