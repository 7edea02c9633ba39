"""No page loads anything from another site: no script, style, font, image or frame. Links to other sites are fine."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup, Tag

from markup import addresses, read

#: What a browser only follows when asked to.
_FOLLOWED = {"a", "form", "area"}
_LOADED_RELATIONS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "manifest",
}
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
_IN_DRAWINGS = re.compile(r"""<(?:image|use|script|feImage)\b[^>]*?\b(?:xlink:href|href|src)=["']([^"']+)""")


def elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def loaded_from_elsewhere(page: BeautifulSoup) -> list[str]:
    """The addresses at other sites that a browser asks when it shows the page."""
    found = [address for element, address in addresses(page) if _is_loaded(element) and elsewhere(address)]
    styles = [style.get_text() for style in page.find_all("style")]
    styles += [element["style"] for element in page.find_all(style=True)]
    return found + [address for style in styles for address in _IN_STYLES.findall(style) if elsewhere(address)]


def _is_loaded(element: Tag) -> bool:
    if element.name == "link":
        return bool(_LOADED_RELATIONS.intersection(element.get("rel", [])))
    return element.name not in _FOLLOWED


def named_in_file(path: Path) -> list[str]:
    """The addresses at other sites that a style sheet or a drawing loads."""
    content = path.read_text(encoding="utf-8")
    return [
        address
        for pattern in (_IN_STYLES, _IN_DRAWINGS)
        for address in pattern.findall(content)
        if elsewhere(address)
    ]


def test_pages_load_nothing_from_elsewhere(site: Path, page: str) -> None:
    found = loaded_from_elsewhere(read(site / page))
    assert not found


def test_styles_and_drawings_load_nothing_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert files
    assert not {path.name: found for path in files if (found := named_in_file(path))}


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/mathjax.js"></script>',
        '<script src="//cdn.example/mathjax.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="https://img.example/a.png" alt="">',
        '<img src="a.png" srcset="a.png 1x, https://img.example/a.png 2x" alt="">',
        '<iframe src="https://video.example"></iframe>',
        "<style>@import 'https://fonts.example/css';</style>",
        '<p style="background: url(https://img.example/a.png)">',
        '<svg><image href="https://img.example/a.png"/></svg>',
    ],
)
def test_a_resource_of_another_site_is_found(tmp_path: Path, html: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<a href="https://fine.example">x</a><link rel="canonical" href="https://fine.example">{html}')
    assert len(loaded_from_elsewhere(read(page))) == 1


def test_a_font_of_another_site_is_found(tmp_path: Path) -> None:
    style, drawing = tmp_path / "a.css", tmp_path / "a.svg"
    style.write_text('a { background: url(a.png) } @font-face { src: url( "https://fonts.example/a.woff2" ) }')
    drawing.write_text('<svg xmlns="http://www.w3.org/2000/svg"><image href="https://img.example/a.png"/></svg>')
    assert named_in_file(style) == ["https://fonts.example/a.woff2"]
    assert named_in_file(drawing) == ["https://img.example/a.png"]
