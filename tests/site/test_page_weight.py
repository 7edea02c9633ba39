"""A page is small on the wire: compressed, with all the styles, scripts, fonts and images that it loads."""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

from markup import addresses, read

BOUND = 120 * 1024

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


def test_pages_are_light(site: Path, all_pages: list[str]) -> None:
    weights = {page: weight(site / page) for page in all_pages if page != "404.html"}
    table = "\n".join(
        f"{bytes_ / 1024:8.1f} KiB  {page}" for page, bytes_ in sorted(weights.items(), key=lambda w: -w[1])
    )
    assert median(weights.values()) <= BOUND, f"the median of these is above {BOUND / 1024:.0f} KiB:\n{table}"


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
