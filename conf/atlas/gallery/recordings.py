"""Recordings of examples that need a GPU: made on a machine that has one, replayed by builders that have none.

A builder without a GPU runs the first half of such an example, and replays the second. A recording lies in
``recordings/<page>/`` beside the script and holds what such a builder cannot make: ``outputs.rst``, the outputs of the second
half cell by cell, their images, and ``manifest.json``. The manifest has the SHA-256 of the code as it ran and of every file,
and says on what and when the recording was made. A recording is used only if all of that fits: edited code or a touched output
is never published as if a GPU had made it. The text between the code may be edited: a page has the text of its script.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sphinx.util.rst import escape

from atlas.toolbox import list_imports, write_whole

from . import sphinx_gallery_patches
from .scripts import Page, ScriptError, find_marks, read_script, split_at_mark
from .visible_code import MARKS_OF_HIDDEN, NEEDS_GPU

MANIFEST, OUTPUTS = "manifest.json", "outputs.rst"
#: Raised by whoever changes what a recording holds, so that older recordings are refused instead of misread.
FORMAT = 5

#: Where a cell begins on a page of sphinx-gallery's, or what stands below the last.
_CELL = re.compile(r"^(?=\.\. GENERATED FROM PYTHON SOURCE LINES |\.\. _sphx_glr_download_)", re.MULTILINE)
#: The beginning of a cell with code on a page of sphinx-gallery's: what stands before its outputs.
_CODE = re.compile(r"\.\. GENERATED FROM PYTHON SOURCE LINES .*\n\n\.\. code-block:: Python\n(?:\n|    .*\n)*")
_OUTPUT_OF = re.compile(r"^\.\. output of measured cell \d+\n", re.MULTILINE)
_IMAGE = re.compile(r"images/sphx_glr_\w+\.[\w.]+")
#: How many asserts ran on a page. The first number is of all.
_CLAIMS = re.compile(r"^\.\. claims:: ((\d+).*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recording:
    """A page's recording as it lies there: usable, or not and why."""

    folder: Path
    manifest: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Why it cannot be used, for a person; empty if it can."""

    def identify(self) -> str:
        """What a page depends on that shows it."""
        return self.fault or hash_file(self.folder / MANIFEST)


def needs_gpu(script: Path) -> bool:
    """Whether a part of ``script`` runs only where there is a GPU."""
    return bool(find_marks(read_script(script)))


def hash_code(script: Path) -> str:
    """The SHA-256 of what a script runs: what it imports, the code of the first half, and the cells of the second, in order.

    Where it imports something, which lines a page hides, and which cell says that it needs a GPU changes no output.

    :raises ValueError, SyntaxError: if sphinx-gallery cannot read the script.
    """
    marks, cells = find_marks(read_script(script)), sphinx_gallery_patches.read_code_cells(script)
    on_paper, measured = [], []
    for line, code in cells.items():
        said = _leave_out_imports(code)
        if any(line > mark for mark in marks):
            measured.append(said)
        else:
            on_paper += said
    imports = sorted(set(list_imports(ast.parse("\n".join(cells.values())))))
    return hashlib.sha256(json.dumps([imports, on_paper, measured]).encode()).hexdigest()


def _leave_out_imports(code: str) -> list[str]:
    """The lines of a cell that say something, but for imports at its top level and the marks of hidden blocks."""
    lines = code.split("\n")
    for node in ast.parse(code).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return [line for line in lines if line.strip() and line.strip() not in (*MARKS_OF_HIDDEN, NEEDS_GPU)]


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_recording(page: Page) -> Recording:
    """Read and verify the recording of ``page``."""
    folder = page.recording
    if not folder.is_dir():
        return Recording(folder, fault="it has not been recorded yet")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if (of := manifest["format"]) != FORMAT:
            return Recording(folder, fault=f"its recording is in format {of}, and this code reads {FORMAT}")
        outputs, _ = dict(manifest["outputs"]), (manifest["gpu"], manifest["date"], manifest["versions"]["torch"])
        if manifest["code"] != hash_code(page.script):
            return Recording(folder, manifest, "its code has changed since it was recorded")
    except (OSError, ValueError, TypeError, LookupError) as error:
        return Recording(folder, fault=f"its {MANIFEST} cannot be read ({type(error).__name__}: {error})")
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)
    present = {file.relative_to(folder).as_posix(): hash_file(file) for file in files}
    for name in sorted({*present, *outputs, OUTPUTS}):
        if present.get(name) != outputs.get(name, ""):
            fault = "is not what was recorded" if name in present else "is missing"
            return Recording(folder, manifest, f"its recorded {name} {fault}")
    return Recording(folder, manifest)


def write_recording(page: Page, made: Path, facts: Mapping[str, Any]) -> None:
    """Record ``page``, from what a run of it has made, and what the run says of itself.

    The manifest names the copy of the script that ran: the script itself may have been edited since.

    :param made: what sphinx-gallery wrote: the outputs, and beside them the copy of the script that ran.
    :param facts: at least ``gpu``, ``date`` and ``versions`` with ``torch``; see ``conf/measure/record.py``.
    """
    folder = page.recording
    shutil.rmtree(folder, ignore_errors=True)
    measured = split_at_mark((made / f"{page.script.stem}.rst").read_text(encoding="utf-8"))[1]
    cells = [cell[found.end() :] for cell in _CELL.split(measured) if (found := _CODE.match(cell))]
    outputs = "".join(f".. output of measured cell {number}\n{cell}" for number, cell in enumerate(cells, 1))
    write_whole(folder / OUTPUTS, outputs)
    names = sorted(set(_IMAGE.findall(outputs)))
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(made / name, folder / name)
    copied = made / page.script.name
    about = {"format": FORMAT, "script": hash_file(copied), "code": hash_code(copied), **facts}
    hashes = {name: hash_file(folder / name) for name in [*names, OUTPUTS]}
    write_whole(folder / MANIFEST, json.dumps({**about, "outputs": hashes}, indent=1, ensure_ascii=False) + "\n")


def replay_recording(page: Page, recording: Recording, made: Path) -> None:
    """Complete the page in ``made``, of which the first half has run here: put the recorded outputs in the second half.

    Without a recording that fits, the second half stays code without outputs. Either way a note at the mark says so.

    :raises ScriptError: if what ran here is not the script that was recorded: it has been saved in the meantime.
    """
    rst, copied = made / f"{page.script.stem}.rst", made / page.script.name
    on_paper, measured = split_at_mark(rst.read_text(encoding="utf-8"))
    note = _write_note(
        "not-recorded",
        "From here on, the outputs are missing: the code needs a GPU, this page was built without one, and "
        f"{recording.fault}. The outputs above need no GPU.",
    )
    if not recording.fault:
        facts = recording.manifest
        if hash_code(copied) != facts["code"]:
            raise ScriptError(f"examples/{page.name}.py was saved while the site was being built; build it again")
        ran_here = sum(int(found[2]) for found in _CLAIMS.finditer(on_paper))
        on_paper = _CLAIMS.sub("", on_paper)  # the recorded half ends with the number of all
        outputs = iter(_OUTPUT_OF.split((recording.folder / OUTPUTS).read_text(encoding="utf-8"))[1:])
        cells = _CELL.split(measured)
        measured = "".join(found[0] + next(outputs) if (found := _CODE.match(cell)) else cell for cell in cells)
        measured = _CLAIMS.sub(rf".. claims:: \1 {ran_here}\n", measured)
        is_edited = hash_file(copied) != facts["script"]
        by = "with this code; the text was edited later" if is_edited else "with this script"
        note = _write_note(
            "recorded",
            f"From here on, the outputs were measured on an {facts['gpu']} with PyTorch {facts['versions']['torch']} on "
            f"{facts['date']}, {by}. This page was built without a GPU; the outputs above are from that build.",
        )
        for name in set(facts["outputs"]) - {OUTPUTS}:
            shutil.copyfile(recording.folder / name, made / name)
    rst.unlink()  # sphinx-gallery writes it read-only
    rst.write_text(on_paper + note + measured, encoding="utf-8")
    sphinx_gallery_patches.mark_current(copied)


def _write_note(kind: str, sentence: str) -> str:
    """What stands at the mark instead, as ``.. needs-a-gpu::`` makes it."""
    return f".. container:: provenance {kind}\n\n   {escape(sentence)}"
