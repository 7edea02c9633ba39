"""A page is small on the wire: compressed, with all the styles, scripts, fonts and images that it loads."""

from __future__ import annotations

import gzip
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

import pytest

from atlas.pages import read_pages
from markup import addresses, read

CHAPTERS = read_pages().chapters

HEAVIEST = 120 * 1024
MEDIAN = 70 * 1024
CHAPTER = 90 * 1024  # the first page of a chapter, with a picture of each of its pages

_LOADED = {"script", "link", "img", "source", "iframe"}
_IN_STYLES = re.compile(r"""url\(\s*["']?([^"')\s]+)""")


def resources(path: Path) -> set[Path]:
    """The page and the files it loads. Of an image in two sizes both are counted, though a browser takes one."""
    found = {path}
    for element, address in addresses(read(path)):
        if element.name in _LOADED and "alternate" not in element.get("rel", []) and (target := _file(path, address)):
            found.add(target)
            if target.suffix == ".css":
                named = _IN_STYLES.findall(target.read_text(encoding="utf-8"))
                found.update(file for name in named if (file := _file(target, name)))
    return found


def _file(base: Path, address: str) -> Path | None:
    parts = urlsplit(address)
    target = (base.parent / unquote(parts.path)).resolve()
    is_loaded = target.suffix != ".html" and target.is_file()
    return target if is_loaded and not parts.scheme and not parts.netloc else None


@cache
def size(path: Path) -> int:
    """Bytes on the wire."""
    return len(gzip.compress(path.read_bytes()))


def weight(page: Path) -> int:
    return sum(map(size, resources(page)))


@pytest.fixture(scope="module")
def weights(site: Path, all_pages: list[str]) -> dict[str, int]:
    """Of each page, from the heaviest on."""
    found = {page: weight(site / page) for page in all_pages if page != "404.html"}
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def test_every_page_is_light(weights: dict[str, int]) -> None:
    heavy = [f"{bytes_ / 1024:.1f} KiB: {page}" for page, bytes_ in weights.items() if bytes_ > HEAVIEST]
    assert not heavy, "\n".join(heavy)


def test_chapters_are_lighter(weights: dict[str, int]) -> None:
    chapters = {page: bytes_ for page, bytes_ in weights.items() if fnmatch(page, "gallery/*/index.html")}
    assert len(chapters) == len(CHAPTERS)
    heavy = [f"{bytes_ / 1024:.1f} KiB: {page}" for page, bytes_ in chapters.items() if bytes_ > CHAPTER]
    assert not heavy, "\n".join(heavy)


def test_half_of_the_pages_are_lighter_still(weights: dict[str, int]) -> None:
    assert median(weights.values()) <= MEDIAN


def test_everything_a_page_loads_is_weighed(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    names = ["_static/a.css", "_static/b.js", "_static/c.woff2", "d.png", "d2.png", "e.html", "page.html"]
    for name in names:
        (tmp_path / name).write_text(name * 100)
    (tmp_path / "_static/a.css").write_text('@font-face { src: url("c.woff2") }')
    (tmp_path / "page.html").write_text(
        '<link rel="stylesheet" href="_static/a.css?v=1"><script src="_static/b.js"></script>'
        '<link rel="next" href="e.html"><img src="d.png" srcset="d.png, d2.png 2.00x"><a href="e.html">x</a>'
    )
    page = tmp_path / "page.html"
    assert {path.relative_to(tmp_path).as_posix() for path in resources(page)} == set(names) - {"e.html"}
    assert weight(page) == sum(size(tmp_path / name) for name in names if name != "e.html")
