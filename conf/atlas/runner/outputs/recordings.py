"""Recordings of examples that need a GPU: made on a machine that has one, replayed by builders that have none.

A builder without a GPU runs the first half of such an example, and replays the second (see ``runner.halves``).

A recording is what sphinx-gallery produced from the whole script, in ``recordings/<page>/`` beside it, with a
``manifest.json``. The manifest holds the SHA-256 of the code as it ran and of every file, and says on what and when the
recording was made. A recording is used only if all of that fits: edited code or a touched output is never published as if a
GPU had made it. The text between the code may be edited: a page has the text of its script, and the outputs of its recording.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atlas.runner import halves, sphinx_gallery_api
from atlas.runner.model import Page
from atlas.runner.scripts import ScriptError, saved_meanwhile
from atlas.toolbox import write_whole
from graphs.model import graph_from_dict

from .cache import sha256
from .fingerprint import Fingerprint

MANIFEST = "manifest.json"
FORMAT = 3
"""Raised by whoever changes what a recording holds, so that older recordings are refused instead of misread."""

_NOT_RECORDED = (".py", ".md5", ".cost.json")
"""Ends of file names that sphinx-gallery writes and that say nothing about the run, or the same as the script."""
_OF_ONE_RUN = ("date", "seconds", "peak_memory", "outputs")
"""What a manifest says that differs from run to run."""
_GRAPH = re.compile(r"^\.\. graph-figure:: /\S+/(images/\S+)$", re.MULTILINE)
"""A figure of a graph on a page of sphinx-gallery's: the name of its data in the recording."""
_CHECKS = re.compile(r"^\.\. claims:: ((\d+).*)\n", re.MULTILINE)
"""How many asserts ran on a page, on a page of sphinx-gallery's. The first number is of all."""
_CODE = re.compile(r"\.\. GENERATED FROM PYTHON SOURCE LINES .*\n\n\.\. code-block:: Python\n(?:\n|    .*\n)*")
"""The beginning of a cell with code on a page of sphinx-gallery's: what stands before its outputs."""
_CELL = re.compile(r"^(?=\.\. GENERATED FROM PYTHON SOURCE LINES )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recording:
    """A page's recording as it lies there: usable, or not and why."""

    folder: Path
    manifest: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    """Why it cannot be used, for a person; empty if it can."""

    def depends_on(self, shared: Fingerprint) -> Fingerprint:
        """What its page depends on besides the script: on what the first half runs with, and on the recording of the second."""
        return {"the recording": self.fault or sha256(self.folder / MANIFEST), **shared}


def pages(root: Path) -> list[Page]:
    """The examples of the repository ``root``."""
    gallery = root / "docs" / "gallery"
    return [Page(script, gallery / script.parent.name) for script in sorted(root.glob("examples/*/*.py"))]


def needed(script: Path) -> bool:
    """Whether a part of ``script`` runs only where there is a GPU."""
    return bool(halves.marks(script.read_text(encoding="utf-8", errors="replace")))


def code_of(script: Path) -> str:
    """The SHA-256 of what a script runs: its code cells in order, and before which of them the second half begins.

    Of a script that sphinx-gallery cannot read it is that of the bytes.
    """
    try:
        text = script.read_text(encoding="utf-8")
        cells = [(line, code) for kind, code, line in sphinx_gallery_api.blocks(script) if kind == "code"]
    except (OSError, SyntaxError, ValueError):
        return sha256(script)
    parted = [line > mark for line, _ in cells for mark in halves.marks(text)]
    return hashlib.sha256(json.dumps([[code for _, code in cells], parted]).encode()).hexdigest()


def folder_of(page: Page) -> Path:
    return page.script.parent / "recordings" / page.script.stem


def look(page: Page, folder: Path | None = None) -> Recording:
    """Read and verify the recording of ``page``, which is beside its script or in ``folder``."""
    return _verified(folder or folder_of(page), page.script.stem, code_of(page.script))


def _verified(folder: Path, stem: str, code: str) -> Recording:
    """The recording in ``folder``, for a script of which ``code_of`` is ``code``."""
    if not folder.is_dir():
        return Recording(folder, fault="it has not been recorded yet")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            fault = f"its recording is in format {manifest['format']}, and this code reads format {FORMAT}"
            return Recording(folder, fault=fault)
        outputs = dict(manifest["outputs"])
        recorded = str(manifest["code"])
        made_on = {name: str(manifest[name]) for name in ("script", "gpu", "date")}
        made_on["torch"] = str(manifest["versions"]["torch"])
    except FileNotFoundError:
        return Recording(folder, fault=f"its recording has no {MANIFEST}")
    except (ValueError, TypeError):
        return Recording(folder, fault=f"its {MANIFEST} is not JSON of the right form")
    except KeyError as error:
        return Recording(folder, fault=f"its {MANIFEST} does not say {error}")
    if recorded != code:
        return Recording(folder, manifest, "its code has changed since it was recorded")
    return Recording(folder, manifest, _fault_of_outputs(folder, outputs, f"{stem}.rst"))


def _fault_of_outputs(folder: Path, outputs: Mapping[str, str], rst: str) -> str:
    """Why the files of a recording cannot be used, for a person; empty if they can."""
    present = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} - {MANIFEST}
    for name in sorted(present | set(outputs) | {rst}):
        if name not in present:
            return f"its recorded {name} is missing"
        if name not in outputs:
            return f"its recording holds {name}, which its {MANIFEST} does not list"
        if sha256(folder / name) != outputs[name]:
            return f"its recorded {name} is not what was recorded"
    for name in _GRAPH.findall((folder / rst).read_text(encoding="utf-8")):
        try:
            graph_from_dict(json.loads((folder / name).read_text(encoding="utf-8"))["graph"])
        except (ValueError, LookupError, TypeError) as error:
            return f"its recorded {name} is of other code than this: {error}"
    return ""


def refuse_foreign(folder: Path) -> None:
    """See that nothing is lost where a recording takes the place of ``folder``.

    :raises FileExistsError: if something is in it that is no recording.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and any(folder.iterdir()):
        raise FileExistsError(
            f"{folder} holds files and no {MANIFEST}: it is no recording; move it away, or choose another"
        )


def write(page: Page, made: Path, folder: Path, facts: Mapping[str, Any]) -> bool:
    """Make ``folder`` the recording of ``page``, from the outputs in ``made`` and what the run says of itself.

    The old recording is there until the new one is whole. It stays if both say the same, what varies from run to run aside.
    The manifest names the copy of the script that ran. The script itself may have been edited since.

    :param made: what sphinx-gallery wrote: the outputs, and beside them the copy of the script that ran.
    :param facts: at least ``gpu``, ``date`` and ``versions`` with ``torch``; see ``conf/record.py``.
    :returns: whether there is a new one.
    :raises FileExistsError: if something is in ``folder`` that is no recording.
    """
    new = _place_for(folder)
    ran = code_of(made / page.script.name)
    _lay_down(made, new, {"format": FORMAT, "script": sha256(made / page.script.name), "code": ran, **facts})
    before, after = (_verified(one, page.script.stem, ran) for one in (folder, new))
    if _steady(page, before) == _steady(page, after):
        shutil.rmtree(new)
        return False
    _put(new, folder)
    return True


def adopt(page: Page, recording: Path) -> None:
    """Make a copy of ``recording``, which was looked at and fits, the recording of ``page``.

    :raises FileExistsError: if something is in its place that is no recording.
    """
    folder = folder_of(page)
    new = _place_for(folder)
    shutil.copytree(recording, new)
    _put(new, folder)


def _place_for(folder: Path) -> Path:
    """Where the recording that shall be ``folder`` is made first; nothing is there."""
    refuse_foreign(folder)
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    return new


def _put(new: Path, folder: Path) -> None:
    """Put a whole recording in the place of ``folder``, whose files are not lost before, whenever this process is killed."""
    old = folder.with_name(f".{folder.name}.old")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _lay_down(made: Path, folder: Path, facts: Mapping[str, Any]) -> None:
    files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    kept = [path for path in files if not path.name.endswith(_NOT_RECORDED)]
    for path in kept:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made / path, folder / path)
    outputs = {path.as_posix(): sha256(folder / path) for path in kept}
    write_whole(folder / MANIFEST, json.dumps({**facts, "outputs": outputs}, indent=1, ensure_ascii=False) + "\n")


def _steady(page: Page, recording: Recording) -> tuple[Any, ...]:
    """The part of a recording that should not change between runs: all but date, timings, and cells with ``# varies:``."""
    if recording.fault:
        return (recording.fault,)
    outputs = dict(recording.manifest["outputs"])
    rst = f"{page.script.stem}.rst"
    del outputs[rst]
    cells = _CELL.split((recording.folder / rst).read_text(encoding="utf-8"))
    varying = [cell for cell in cells if "\n.. varies::" in cell]
    images = set(re.findall(r"sphx_glr_\w+\.(?:svg|graph\.json)", "".join(varying)))
    images |= {image.replace("_001.", "_thumb.") for image in images}  # a card shows the first
    return (
        {name: fact for name, fact in recording.manifest.items() if name not in _OF_ONE_RUN},
        {name: digest for name, digest in outputs.items() if Path(name).name not in images},
        [cell for cell in cells if cell not in varying],
    )


def replay(page: Page, recording: Recording, made: Path) -> None:
    """Complete the page in ``made``, of which the first half has run here: put the recorded second half in its place.

    Without a recording that fits, the second half stays code without outputs. Either way a note at the mark says so.

    :raises ScriptError: if what ran here is not the script that was recorded: it has been saved in the meantime.
    """
    rst, copied = made / f"{page.script.stem}.rst", made / page.script.name
    on_paper, measured = halves.of_page(rst.read_text(encoding="utf-8"))
    if recording.fault:
        note = f".. not-recorded:: {recording.fault}"
    else:
        facts = recording.manifest
        if code_of(copied) != facts["code"]:
            raise ScriptError(saved_meanwhile(f"examples/{page.name}.py"))
        ran_here = sum(int(found[2]) for found in _CHECKS.finditer(on_paper))
        on_paper = _CHECKS.sub("", on_paper)  # the recorded half ends with the number of all checks
        recorded = halves.of_page((recording.folder / rst.name).read_text(encoding="utf-8"))[1]
        measured = _with_outputs(measured, recorded)
        measured = _CHECKS.sub(rf".. claims:: \1 {ran_here}\n", measured)
        note = f".. recorded::\n   :gpu: {facts['gpu']}\n   :date: {facts['date']}\n   :torch: {facts['versions']['torch']}"
        if sha256(copied) != facts["script"]:
            note += "\n   :edited:"
        _add_images(recording, made)
    rst.unlink()  # sphinx-gallery writes it read-only
    rst.write_text(on_paper + note + measured, encoding="utf-8")
    sphinx_gallery_api.mark_current(copied)


def _with_outputs(text: str, recorded: str) -> str:
    """Half a page whose code did not run, with the outputs that its code cells have in ``recorded``."""
    outputs = (cell[found.end() :] for cell in _CELL.split(recorded) if (found := _CODE.match(cell)))
    cells = (
        found[0] + next(outputs) if (found := _CODE.match(cell)) else cell  # the code is the same: code_of said so
        for cell in _CELL.split(text)
    )
    return "".join(cells)


def _add_images(recording: Recording, made: Path) -> None:
    """Copy the recorded images that the first half has not made here."""
    for name in recording.manifest["outputs"]:
        if name.startswith("images/") and not (made / name).exists():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(recording.folder / name, made / name)
