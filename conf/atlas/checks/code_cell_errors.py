"""A ``{code-cell}`` that raises, hangs or takes its process with it is named with its line, and its page shows it.

Left alone, MyST-NB names the page and no line. If the process that ran the cell has died, it does not even name the page. It
has no hook for a cell that fails, so its client is replaced by a subclass that reports the line.

MyST-NB 1.4 is so; no issue was found that reports it. With a newer version MyST-NB's own client is used and a warning says so:
``tests/checks/test_code_cell_errors.py`` then shows whether this file is still needed. Delete it when MyST-NB names the line.
"""

from __future__ import annotations

import re
from pathlib import Path

import myst_nb.core.execute
from myst_nb.core.execute.inline import NotebookClientInline
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from atlas.upstream import has_bug

logger = logging.getLogger(__name__)

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_LINE_OF_CELL = re.compile(r"^ *Cell In\[\d+\], line (\d+)", re.MULTILINE)


class Client(NotebookClientInline):
    """Runs the cells of a page one by one, and none after a cell that fails."""

    def code_cell_outputs(self, cell_index: int) -> tuple[int | None, list[NotebookNode]]:
        failed_before = self._cell_error is not None
        try:
            return super().code_cell_outputs(cell_index)
        except DeadKernelError as error:
            self._cell_error, self._exc_string = error, str(error)
            return None, self.notebook.cells[cell_index].outputs
        finally:
            if self._cell_error is not None and not failed_before:
                self._report(self._cell_error)

    def eval_variable(self, name: str) -> list[NotebookNode]:
        if self._cell_error:
            raise RuntimeError("a cell above it failed")
        return super().eval_variable(name)

    def _report(self, error: Exception) -> None:
        cell = self.notebook.cells[self._last_cell_executed]
        line = _first_line(
            cell.source, self.cell_line(self._last_cell_executed), self.path.read_text(encoding="utf-8")
        )
        if isinstance(error, CellExecutionError):
            message = f"{error.ename}: {error.evalue}".strip(": ").partition("\n")[0]
            if within := _LINE_OF_CELL.search(_COLOUR.sub("", error.traceback)):
                line += int(within[1]) - 1
        else:
            message = "its process has ended; run the code in a script of its own to see why"
            if isinstance(error, CellTimeoutError):
                message = f"it did not end within {self.nb_config.execution_timeout} s; make it shorter"
            cell.outputs.append(new_output("error", ename="", evalue=message, traceback=[message]))
        logger.error("this cell failed: %s", message, location=f"{self.path}:{line}")


def _first_line(code: str, fence: int, page: str) -> int:
    """The line of a page on which a cell's code begins: below its fence and its options.

    >>> _first_line("x = 1", 3, "Text.\\n\\n```{code-cell}\\n:tags: [hide-input]\\n\\nx = 1\\n```\\n")
    6
    """
    (first, *_) = code.splitlines() or [""]
    lines = page.splitlines()
    return next((number for number in range(fence, len(lines) + 1) if lines[number - 1] == first), fence)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Remove MyST-NB's report of an earlier failure, which would stay on the site. Connected to ``env-purge-doc``."""
    report = Path(app.outdir, "reports", f"{docname}.err.log")
    if report.is_file():
        report.unlink()
        while not any((report := report.parent).iterdir()):
            report.rmdir()


def setup(app: Sphinx) -> None:
    if has_bug("myst-nb", (1, 4)) and hasattr(myst_nb.core.execute, "NotebookClientInline"):
        myst_nb.core.execute.NotebookClientInline = Client
    else:
        logger.warning("MyST-NB has changed: a cell that fails may be named without its line; see %s", __name__)
    app.connect("env-purge-doc", forget)
