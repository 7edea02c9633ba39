"""Run the cells of notebooks as Jupyter does, each notebook in a process of its own, forked from one that has imported PyTorch.

``python tests/notebook_kernel.py examples/graphs/first_graph.py ...`` runs what a reader sees of scripts, without a build.
``SCRIPT=PAGE`` compares what a run prints with the built page.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import os
import re
import symtable
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
os.environ |= {"MPLBACKEND": "agg", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
sys.path[:0] = [str(ROOT / "conf"), str(ROOT / "tests")]

import error_pages
from atlas.gallery.scripts import find_marks
from atlas.gallery.sphinx_gallery_patches import read_code_cells, without_hidden
from atlas.gallery.visible_code import NEEDS_GPU, show_code
from atlas.toolbox import list_imports
from markup import OUTPUTS, read

_TEXT = re.compile(r"# ?%%|#{20,}")  # where a text block begins; the code cells below it follow its comment lines
_FOLD = re.compile(r"#\s+\.\. how-measured::")
#: What Python itself puts into a module.
_OF_PYTHON = {*dir(builtins), "__name__", "__file__", "__doc__"}


def find_hidden_needs(text: str) -> tuple[int, str] | None:
    """The first line of a script that needs hidden code to run, or that a reader has to open a fold to import, and why.

    :raises SyntaxError: if what a reader sees of the script is no Python.
    """
    seen = "\n".join(line or "" for line in show_code(text).lines)  # all have their numbers
    unfolded = "\n".join("" if is_folded else line for line, is_folded in _mark_folded(seen))
    imported = {name for _, _, name in list_imports(ast.parse(text))}
    folded = _find_unbound(unfolded) & imported
    for code, names, only in (
        (seen, _find_unbound(seen), "only hidden code defines"),
        (unfolded, folded, "only folded code imports"),
    ):
        used = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and node.id in names)
        if first := min(used, key=lambda node: node.lineno, default=None):
            return first.lineno, f"this visible code uses {first.id!r}, which {only}; move it into sight"
    return None


def _mark_folded(code: str) -> Iterator[tuple[str, bool]]:
    is_folded = is_text = False
    for line in code.split("\n"):
        if _TEXT.match(line):
            is_text = True
        elif _FOLD.match(line):
            is_folded, is_text = True, False
        elif is_text and not line.startswith("#"):
            is_text = False
        elif is_text and line.strip("# "):  # an empty text block ends no fold
            is_folded = False
        yield line, is_folded


def _find_unbound(code: str) -> set[str]:
    """The global names that code uses and binds nowhere."""
    module = symtable.symtable(code, "<visible code>", "exec")
    bound = {symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    tables, used = [module], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table is module or symbol.is_global())
        }
    return used - bound - _OF_PYTHON


def run_cells(cells: Sequence[str]) -> list[tuple[str, str, str]]:
    """Run cells in a new kernel, in this process, which should do nothing after it. A cell that raises ends itself alone.

    :returns: of each what it printed, what it warned of, and the error that ended it, as ``NameError: ...``, or nothing.
    """
    from ipykernel.inprocess import InProcessKernelManager
    from ipykernel.iostream import OutStream

    asked = "TRITON_INTERPRET" in "".join(cells)  # which Triton must know when it is imported
    for name in [name for name in sys.modules if asked and re.match(r"triton(?!\._C)\b", name)]:
        del sys.modules[name]
    OutStream.flush_timeout = 600  # not 10 s: on a machine with other work, what a cell says would be lost
    manager = InProcessKernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    ran, kept, read = [], os.dup(2), 0
    with tempfile.TemporaryFile() as raw:  # what is written past sys.stderr, which Jupyter shows too
        os.dup2(raw.fileno(), 2)
        for cell in cells:
            client.execute(cell)
            raw.seek(read)
            printed, warned, error = "", raw.read().decode(errors="replace"), ""
            read = raw.tell()
            for message in client.iopub_channel.get_msgs():
                content = message["content"]
                if message["msg_type"] == "stream" and content["name"] == "stdout":
                    printed += content["text"]
                elif message["msg_type"] == "stream":
                    warned += content["text"]
                elif message["msg_type"] == "error":
                    error = f"{content['ename']}: {content['evalue']}"
            ran.append((printed, warned, error))
        os.dup2(kept, 2)
    return ran


def call_in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """What ``function`` returns in a forked process, in an empty folder.

    :raises RuntimeError: if it raises, or the process dies.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.chdir(folder)
                said.write(json.dumps(function(*arguments)).encode())
                said.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            raise RuntimeError(f"the process ended with {code}")
        said.seek(0)
        return json.loads(said.read())


class Cell(NamedTuple):
    """A code cell as a reader sees it."""

    line: int
    code: str
    raises: bool
    """Whether it has to raise."""
    needs_gpu: bool
    is_measured: bool
    """Whether it stands in the half of a page that ends where there is no GPU."""


def read_cells(script: Path) -> list[Cell]:
    """The code cells of a script as a reader sees them."""
    text = script.read_text(encoding="utf-8")
    mark = next(iter(find_marks(text)), 10**9)
    cells = [
        (line, without_hidden(code).strip(), show_code(code).raises) for line, code in read_code_cells(script).items()
    ]
    return [Cell(line, code, raises, code.startswith(NEEDS_GPU), line > mark) for line, code, raises in cells if code]


def simplify(message: str) -> str:
    """A line without its numbers, which a hidden check that draws some may change, and without what Jupyter names otherwise."""
    words = re.sub(r"\b(?:\w+\.)+(?=[A-Z]\w+:)|\w+\.py\b", "", message)  # the module of an error, a file
    return re.sub(r"[\s,]+", "", re.sub(r"[-+]?(?:\d[\d.,]*(?:e[-+]?\d+)?|\bnan\b|\binf\b)", "0", words))


def find_faults(script: Path, page: Path | None = None) -> list[str]:
    """What is wrong with what a reader sees of a script, where there is no GPU, with the lines.

    :param page: the built page. What a reader's run prints must stand there, except where a page says that it varies.
    """
    if needs := find_hidden_needs(script.read_text(encoding="utf-8")):
        return [f"{script}:{needs[0]}: {needs[1]}"]
    cells = [cell for cell in read_cells(script) if not cell.is_measured]
    ran = call_in_child(run_cells, [cell.code for cell in cells])
    faults = []
    shown = (
        {simplify(line) for part in read(page).select(OUTPUTS) for line in part.get_text().split("\n")}
        if page
        else set()
    )
    for cell, (printed, _, error) in zip(cells, ran, strict=True):
        if cell.needs_gpu:
            continue
        if bool(error) != cell.raises:
            faults.append(f"{script}:{cell.line}: this cell raises {error or 'nothing'}")
        printed = re.sub(r'^ *File ".*\n(?: {4}.*\n)*', "", printed, flags=re.MULTILINE)  # of a traceback
        other = [line for line in printed.split("\n") if simplify(line) not in shown]
        if page and other and "# varies:" not in cell.code:
            faults.append(f"{script}:{cell.line}: this cell prints {other[0]!r}, and its page shows something else")
    title = error_pages.read(script).title
    said = "".join(ran[0]) if ran else ""
    if script.parent.name == "errors" and not cells[0].needs_gpu and simplify(title) not in simplify(said):
        faults.append(f"{script}:{cells[0].line}: the first block says {said!r} and not {title!r}")
    return faults


if __name__ == "__main__":
    for module in ("ipykernel.inprocess", "matplotlib.pyplot", "pandas", "torch._dynamo"):
        importlib.import_module(module)  # before the first fork, so that all share them
    pages = (argument.partition("=") for argument in sys.argv[1:])
    wrong = [fault for script, _, page in pages for fault in find_faults(Path(script), Path(page) if page else None)]
    print("\n".join(wrong) or "all of it runs")
    sys.exit(bool(wrong))
