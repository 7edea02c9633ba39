"""sphinx-gallery's cache: the outputs of each example under ``docs/gallery``, with a receipt that says what they are.

sphinx-gallery takes an example for current as long as the script is the same. But its outputs also depend on the code that ran
with it and on versions: the receipt holds one hash of all. It is removed before the first file is touched, and written after
the last; outputs without one are never used. If a build is killed, or the disk is full, the next build makes them again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any

from atlas.toolbox import load_json, save_json, write_whole

from . import sphinx_gallery_patches
from .scripts import Fault, Page, read_script, read_title

CONF = Path(__file__).parents[2]
PACKAGES = ("torch", "numpy", "pandas", "scikit-learn", "matplotlib", "sphinx-gallery")
_DRIVER = Path("/proc/driver/nvidia/version")

#: The last number counts: sphx_glr_first_001_001.svg is of the page first_001
_IMAGE = re.compile(r"sphx_glr_(\w+)_(?:\d{3,}|thumb)\.")


def compute_fingerprint(settings: Mapping[str, Any]) -> str:
    """One hash of all that the outputs of examples depend on that run here, besides their scripts.

    :param settings: sphinx-gallery's, filled in.
    """
    found = hashlib.sha256()
    for path in list_code(CONF):
        found.update(f"{path.relative_to(CONF)}\0".encode() + path.read_bytes())
    # to ask torch would start CUDA, and then no fork may follow
    driver = _DRIVER.read_bytes() if _DRIVER.exists() else b""
    versions = [platform.python_version(), *map(version, PACKAGES)]
    found.update(repr((versions, driver, sphinx_gallery_patches.describe_settings(settings))).encode())
    return found.hexdigest()


@cache
def list_code(conf: Path) -> list[Path]:
    """The files of ours that run with an example: ``gallery/process.py``, what that imports, and so on."""
    finder = ModuleFinder([str(conf)])
    finder.import_hook("atlas.gallery.process")
    files = {Path(module.__file__) for module in finder.modules.values() if module.__file__ and not module.__path__}
    return sorted(files | {conf / "atlas" / "gallery" / "atlas.mplstyle"})


def compute_key(page: Page, *besides: str) -> dict[str, str]:
    """What the outputs of a page depend on.

    :param besides: the fingerprint, and the recording that is replayed.
    """
    return {"of": hashlib.sha256(repr((page.script.read_bytes(), besides)).encode()).hexdigest()}


def is_current(page: Page, key: Mapping[str, str]) -> bool:
    """Whether the page has outputs, and they depend on nothing else."""
    there = (page.cache / f"{page.script.stem}.rst").is_file()
    return there and load_json(page.receipt, dict(key)) is not None


def publish_page(page: Page, made: Path, key: Mapping[str, str]) -> None:
    """Move what is in the folder ``made`` to the page's place, and write its receipt.

    A file whose content is the same keeps its time, so that Sphinx does not read the page again.
    """
    page.receipt.unlink(missing_ok=True)
    files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    for name in files:
        target = page.cache / name
        if not target.is_file() or target.read_bytes() != (made / name).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            part = Path(shutil.move(made / name, target.with_name(target.name + ".part")))
            os.replace(part, target)
    remove_page(page, all_but=[page.cache / name for name in files])
    save_json(page.receipt, dict(key))


def publish_failure(page: Page, fault: Fault) -> None:
    """Put a page in its place that says that the script failed, and nothing else. It has no receipt: it is not current."""
    remove_page(page)
    page.cache.mkdir(parents=True, exist_ok=True)
    title = read_title(read_script(page.script)) or page.name
    label = f"sphx_glr_{page.cache.parent.name}_{page.cache.name}_{page.script.name}"
    text = (
        f".. _{label}:\n\n{title}\n{'=' * max(4, 2 * len(title))}\n\n"
        ".. error:: This page has no outputs: its script failed when the site was built.\n\n"
        f".. code-block:: none\n\n{textwrap.indent(fault.make_report(), '   ')}\n"
    )
    write_whole(page.cache / f"{page.script.stem}.rst", text)
    copied = page.cache / page.script.name
    shutil.copyfile(page.script, copied)
    sphinx_gallery_patches.put_broken_thumbnail(page.cache / "images", page.script.stem)
    sphinx_gallery_patches.mark_current(copied)


def remove_page(page: Page, all_but: Collection[Path] = ()) -> None:
    """Remove the outputs of a page, but for some."""
    for path, stem in list(_list_outputs(page.cache)):
        if stem == page.script.stem and path not in all_but:
            path.unlink(missing_ok=True)


def remove_gone_pages(root: Path, pages: Iterable[Page]) -> list[str]:
    """Remove what examples left that are gone or renamed; return the names of the pages removed.

    A gone page is known by any of its files: a build may have been killed while it removed them.
    """
    living = {(page.cache.name, page.script.stem) for page in pages}
    gone = set()
    for folder in sorted(path for path in root.glob("*") if path.is_dir()):
        for path, stem in list(_list_outputs(folder)):
            if (folder.name, stem) not in living and stem != "index":  # a chapter's index is sphinx-gallery's
                gone.add(f"{folder.name}/{stem}")
                path.unlink()
        if folder.name not in {chapter for chapter, _ in living}:
            shutil.rmtree(folder)
    return sorted(gone)


def _list_outputs(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files in a chapter's folder, each with the name of its page."""
    yield from ((path, path.name.partition(".")[0]) for path in folder.glob("*.*") if path.is_file())
    for path in folder.glob("images/**/sphx_glr_*"):
        if found := _IMAGE.match(path.name):
            yield path, found[1]
