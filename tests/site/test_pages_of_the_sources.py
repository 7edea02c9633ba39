"""Each source has its page, no page is left over from an earlier source, and the sitemap names them all."""

from __future__ import annotations

import re
from pathlib import Path

from markup import read
from sources import GENERATED, ROOT


def built(site: Path) -> set[str]:
    """The addresses of the pages in a folder."""
    return {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts}


def moved() -> set[str]:
    """The old addresses, at which a page leads on."""
    path = ROOT / "docs/moved-pages.txt"
    return {line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()} if path.is_file() else set()


def in_sitemap(site: Path) -> set[str]:
    """The pages that sitemap.xml names, without the site's own address."""
    home = read(site / "index.html").select_one("link[rel=canonical]")["href"].removesuffix("index.html")
    named = re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text(encoding="utf-8"))
    return {address.removeprefix(home) for address in named}


def test_every_source_has_its_page(site: Path, all_pages: list[str]) -> None:
    assert not set(all_pages) - built(site)


def test_no_page_without_a_source(site: Path, all_pages: list[str]) -> None:
    left_over = built(site) - set(all_pages) - moved()
    assert not left_over, f"left over from an earlier build, run 'rm -rf build': {sorted(left_over)}"


def test_the_sitemap_names_every_page(site: Path, all_pages: list[str]) -> None:
    assert in_sitemap(site) == set(all_pages) - GENERATED


def test_every_address_that_was_published_answers(site: Path) -> None:
    listed = (ROOT / "docs/published-pages.txt").read_text(encoding="utf-8").split()
    assert listed and not [address for address in listed if not (site / address).is_file()]


def test_a_page_that_the_sitemap_lacks_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<link rel="canonical" href="https://atlas.example/index.html">')
    (tmp_path / "more.html").write_text("<h1>More</h1>")
    (tmp_path / "sitemap.xml").write_text("<urlset><url><loc>https://atlas.example/index.html</loc></url></urlset>")
    assert built(tmp_path) - in_sitemap(tmp_path) == {"more.html"}
