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
