"""sphinx-gallery's cache: the outputs of each example under ``docs/gallery``, with a receipt that says what they are.

An example's outputs are made in a folder of their own and then moved to their place. The receipt is removed before the first
file is touched, and written after the last. Outputs without a receipt are never used: if a build is killed in between, the
next one makes them again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from atlas.runner import sphinx_gallery_api
from atlas.runner.model import Page
from atlas.runner.processes.faults import Fault
from atlas.toolbox import write_whole

from .fingerprint import Fingerprint, changes


def read_receipt(page: Page) -> dict[str, Any]:
    """The page's receipt, or an empty one if there is none that can be read."""
    try:
        receipt = json.loads(page.receipt.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return receipt if isinstance(receipt, dict) else {}


def stale(page: Page, now: Fingerprint) -> list[str]:
    """The reasons why the page's outputs cannot be used, for a person; an empty list if they can."""
    receipt = read_receipt(page)
    if not receipt:
        return ["it has no outputs yet"]
    reasons = changes(receipt.get("fingerprint", {}), now)
    if reasons:
        return reasons
    for name, digest in receipt.get("outputs", {}).items():
        path = page.cache / name
        if not path.is_file() or sha256(path) != digest:
            return [f"its output {name} is missing or damaged"]
    return []


def publish(page: Page, made: Path, fingerprint: Fingerprint, **facts: Any) -> None:
    """Move what is in the folder ``made`` to the page's place, and write its receipt.

    A file whose content is the same keeps its time, so that Sphinx does not read the page again.

    :param facts: what else to note in the receipt, such as the seconds that the run took.
    """
    files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    outputs = {name.as_posix(): sha256(made / name) for name in files}
    old = read_receipt(page).get("outputs", {})
    page.receipt.unlink(missing_ok=True)
    for name, digest in outputs.items():
        target = page.cache / name
        if not target.is_file() or sha256(target) != digest:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(made / name, target.with_name(target.name + ".part"))
            os.replace(target.with_name(target.name + ".part"), target)
    # what an earlier run left, and what stood there in place of outputs when the script failed
    left = {page.cache / name for name in old} | set(_files_of(page.cache, page.script.stem))
    for path in left - {page.cache / name for name in outputs}:
        path.unlink(missing_ok=True)
    write_whole(page.receipt, json.dumps({"fingerprint": fingerprint, "outputs": outputs, **facts}, indent=1))


def publish_failure(page: Page, fault: Fault) -> None:
    """Put a page in its place that says that the script failed, and nothing else. It has no receipt: it is not current."""
    remove(page)
    page.cache.mkdir(parents=True, exist_ok=True)
    title = sphinx_gallery_api.title(page.script)
    label = f"sphx_glr_{page.cache.parent.name}_{page.cache.name}_{page.script.name}"
    report = "\n".join(f"   {line}" for line in fault.report().splitlines())
    text = (
        f".. _{label}:\n\n{title}\n{'=' * max(4, len(title))}\n\n"
        ".. error:: This page has no outputs: its script failed when the site was built.\n\n"
        f".. code-block:: none\n\n{report}\n"
    )
    write_whole(page.cache / f"{page.script.stem}.rst", text)
    copied = page.cache / page.script.name
    shutil.copyfile(page.script, copied)
    sphinx_gallery_api.broken_thumbnail(page.cache / "images", page.script.stem)
    sphinx_gallery_api.mark_current(copied)


def remove(page: Page) -> None:
    """Remove all outputs of a page."""
    page.receipt.unlink(missing_ok=True)
    for path in list(_files_of(page.cache, page.script.stem)):
        path.unlink(missing_ok=True)


def remove_all_but(root: Path, pages: Iterable[Page]) -> list[str]:
    """Remove what examples left that are gone or renamed; return the names of the pages removed.

    A gone page is known by any of its files: a build may have been killed while it removed them.
    """
    living = {(page.cache.name, page.script.stem) for page in pages}
    chapters = {page.cache.name for page in pages}
    gone = []
    for folder in sorted(path for path in root.glob("*") if path.is_dir()):
        for stem in sorted(_pages_in(folder)):
            if (folder.name, stem) not in living:
                gone.append(f"{folder.name}/{stem}")
                remove(Page(Path(f"{stem}.py"), folder))
        if folder.name not in chapters:
            shutil.rmtree(folder)
    return gone


_SUFFIXES = (".py", ".py.md5", ".rst", ".ipynb", ".zip", ".cost.json", ".codeobj.json", ".receipt.json")
_FILE = re.compile(rf"(?P<page>\w+)({'|'.join(map(re.escape, _SUFFIXES))})(\.part)?")
#: The last number counts: sphx_glr_first_001_001.svg is of the page first_001
_IMAGE = re.compile(r"sphx_glr_(?P<page>\w+)_(\d{3,}|thumb)\..+")
_INDEX = "index"
"""Of a chapter; sphinx-gallery writes it, and no page may have this name."""


def _pages_in(folder: Path) -> set[str]:
    """The names of the pages that have any file in a chapter's folder."""
    found = [_FILE.fullmatch(path.name) for path in folder.glob("*")]
    found += [_IMAGE.fullmatch(path.name) for path in folder.glob("images/**/sphx_glr_*")]
    return {match["page"] for match in found if match} - {_INDEX}


def _files_of(folder: Path, stem: str) -> Iterator[Path]:
    """The files in a chapter's folder that sphinx-gallery made for the page ``stem``, and no other page's."""
    yield from (path for path in folder.glob(f"{stem}.*") if _belongs(_FILE, path, stem))
    yield from (path for path in folder.glob("images/**/sphx_glr_*") if _belongs(_IMAGE, path, stem))


def _belongs(pattern: re.Pattern[str], path: Path, stem: str) -> bool:
    found = pattern.fullmatch(path.name)
    return found is not None and found["page"] == stem


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
