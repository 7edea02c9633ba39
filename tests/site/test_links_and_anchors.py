"""Every link inside the site leads to a file that exists, and to an anchor that exists in it."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from markup import addresses, read


def broken(site: Path, page: str, root: str = "/") -> list[str]:
    """The addresses in a page that lead nowhere, links to other sites left aside.

    :param root: the path at which the site will stand: addresses of the page for what is not found begin with it.
    """
    found = set()
    for element, address in addresses(read(site / page)):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = _target(site, page, unquote(parts.path), root)
        if not target.is_file():
            found.add(f"{element.name} leads to no file: {address}")
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in anchors(target):
            found.add(f"{element.name} leads to no anchor: {address}")
    return sorted(found)


def _target(site: Path, page: str, path: str, root: str) -> Path:
    """The file behind an address; one that begins with / counts from the site's root."""
    if not path:
        return site / page
    if path.startswith("/") and not path.startswith(root):
        return site.parent / path.lstrip("/")
    target = site / path.removeprefix(root) if path.startswith("/") else (site / page).parent / path
    return target / "index.html" if target.is_dir() else target


@cache
def anchors(path: Path) -> frozenset[str]:
    return frozenset(_anchors(path))


def _anchors(path: Path) -> list[str]:
    found = _Anchors()
    found.feed(path.read_text(encoding="utf-8"))
    found.close()
    return found.names


class _Anchors(HTMLParser):
    """Names the anchors as it reads, and makes no tree: a page leads to many, and each process reads them all."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names += [
            value
            for name, value in dict(attrs).items()
            if value and (name == "id" or (name == "name" and tag == "a"))
        ]


def test_links_lead_somewhere(site: Path, page: str, published: dict[str, str]) -> None:
    assert not broken(site, page, urlsplit(published.get("ATLAS_SITE", "")).path or "/")


def test_a_site_below_a_path(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<a href="/fork/page.html"></a><a href="/page.html"></a><a href="page.html"></a>'
    )
    assert broken(tmp_path, "page.html", "/fork/") == ["a leads to no file: /page.html"]


def test_ids_are_unique(site: Path, page: str) -> None:
    ids = list(_anchors(site / page))
    twice = sorted({name for name in ids if ids.count(name) > 1})
    assert not twice


@pytest.mark.parametrize(
    "html",
    [
        '<a href="gone.html">',
        '<a href="#gone">',
        '<a href="page.html#gone">',
        '<a href="/gone/">',
        '<img src="gone.png">',
        '<img src="page.html" srcset="page.html 1x, gone.png 2x">',
        '<link rel="stylesheet" href="gone.css?v=1">',
        '<script src="gone.js"></script>',
        '<form action="gone.html"></form>',
        '<svg><use href="#gone"></use></svg>',
        '<a download href="_downloads/gone.py">',
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, html: str) -> None:
    (tmp_path / "page.html").write_text(f'<p id="here"><a href="#here"><a href="page.html#here">{html}')
    assert len(broken(tmp_path, "page.html")) == 1
