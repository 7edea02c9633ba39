"""The sources of a small site: one example in its chapter, as links, so that what is built is what the author edits."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from atlas.toolbox import write_if_changed

HEADER = "GALLERY_HEADER.rst"
_WITH_IT = ("search", "reference/names")  # to which each page leads
_MEASURED = ("reference/versions", "reference/data/version_probes.json")  # of other versions: a page may show it
_FRONT = "# One page\n\n```{toctree}\n" + "\n".join(("gallery/index", *_WITH_IT)) + "\n```\n"
_GALLERY = "The chapters\n============\n\nThis site has one page.\n"


class UnknownPageError(Exception):
    """There is no such page; the message says which there are."""


def lay(root: Path, page: str, site: Path) -> Path:
    """Make the sources of the site in the folder ``site``, and return the script there. What was made before is kept.

    :param root: the repository.
    :param page: as ``chapter/page``.
    :raises UnknownPageError: if the repository has no such page.
    """
    name = page.removeprefix("examples/").removesuffix(".py")
    pages = sorted(
        path.relative_to(root / "examples").with_suffix("").as_posix() for path in root.glob("examples/*/*.py")
    )
    if name not in pages:
        raise UnknownPageError(_unknown(name, pages))
    chapter, _slash, stem = name.partition("/")
    examples = site / "examples"
    links = {
        examples / f"{name}.py": root / "examples" / f"{name}.py",
        examples / "tags.toml": root / "examples/tags.toml",
        examples / chapter / "recordings" / stem: root / "examples" / chapter / "recordings" / stem,
    }
    links |= {site / "docs" / f"{other}.md": root / "docs" / f"{other}.md" for other in _WITH_IT}
    links |= {site / "docs" / part: root / "docs" / part for part in _MEASURED}
    links = {link: target for link, target in links.items() if target.exists()}
    for old in examples.rglob("*"):
        if old.is_symlink() and old not in links:
            old.unlink()
    for link, target in links.items():
        _link(link, target)
    title = (root / "examples" / chapter / HEADER).read_text(encoding="utf-8").partition("\n\n")[0]
    write_if_changed(examples / chapter / HEADER, f"{title}\n")
    write_if_changed(examples / HEADER, _GALLERY)
    write_if_changed(site / "docs/index.md", _FRONT)
    for other in examples.iterdir():  # the chapter of another page, which was built before
        if other.is_dir() and other.name != chapter:
            (other / HEADER).unlink(missing_ok=True)
    return examples / f"{name}.py"


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    to = os.path.relpath(target, link.parent)
    if not link.is_symlink() or os.readlink(link) != to:
        link.unlink(missing_ok=True)
        link.symlink_to(to)


def _unknown(name: str, pages: list[str]) -> str:
    chapter, slash, stem = name.partition("/")
    chapters = sorted({page.partition("/")[0] for page in pages})
    if not name:
        return f"name a page, as {pages[0]}"
    if not slash or chapter not in chapters:
        near = [page for page in pages if page.endswith(f"/{name.rpartition('/')[2]}")]
        meant = f"; is it {near[0]}?" if near else ""
        return f"there is no page {name}: write it as chapter/page; the chapters are {', '.join(chapters)}{meant}"
    there = [page.partition("/")[2] for page in pages if page.startswith(f"{chapter}/")]
    near = difflib.get_close_matches(stem, there, 1)
    meant = f"; is it {chapter}/{near[0]}?" if near else "."
    return f"there is no page {name}{meant} The chapter has {', '.join(there)}"
