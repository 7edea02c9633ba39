"""Formulas are MathML in the page, wherever they stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import build, written

Page = Callable[[str], BeautifulSoup]


def _tex(page: BeautifulSoup, selector: str) -> list[str]:
    return [math.annotation.get_text().strip() for math in page.select(f"{selector} math")]


def test_markdown(page: Page) -> None:
    assert _tex(page("guide"), "#formulas p") == ["f'(x) = 2x"]
    assert _tex(page("guide"), "#formulas div.math")[0] == "f(x) = x^2"


def test_example(page: Page) -> None:
    assert _tex(page("graph_of_a_product"), "article") == ["y = w x", r"\frac{\partial y}{\partial w} = x"]


def test_numbered_formula_is_linked(page: Page) -> None:
    guide = page("guide")
    assert guide.select_one('p a[href="#equation-square"]').get_text() == "(1)"
    assert guide.select_one("#equation-square .eqno").get_text().startswith("(1)")


def test_matrix_and_aligned_are_tables(page: Page) -> None:
    (last,) = page("guide").select("#formulas div.math")[1:]
    assert [len(table.find_all("mtr")) for table in last.find_all("mtable")] == [2, 2]


def test_only_a_page_with_formulas_asks_for_their_font(page: Page) -> None:
    font = 'link[rel="preload"][href="{}_static/fonts/atlas-math.woff2"][crossorigin]'
    assert page("guide").select(font.format(""))
    assert page("graph_of_a_product").select(font.format("../../"))
    assert not page("no_assert").select('link[rel="preload"]')


def test_title_and_the_links_made_of_it(tmp_path: Path) -> None:
    """Sphinx copies titles into the side bar and the table of contents."""
    files = {"docs/square.md": "# The square $x^2$\n\n## Its derivative $2x$\n\nText.\n"}
    done = build(written(tmp_path, files))
    assert done.code == 0, done.output
    square, index = (
        BeautifulSoup((done.out / name).read_bytes(), "html.parser") for name in ("square.html", "index.html")
    )
    assert _tex(square, "h1") == _tex(index, ".sidebar-tree") == ["x^2"]
    assert _tex(square, "h2") == ["2x"]


def test_another_version_of_pandoc_converts_all_formulas_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = written(tmp_path, {"docs/square.md": "# The square\n\n$x^2$\n"})
    before = build(site).times()
    other = tmp_path / "packages" / "pypandoc_binary-0.dist-info" / "METADATA"
    other.parent.mkdir(parents=True)
    other.write_text("Name: pypandoc-binary\nVersion: 0\n")
    monkeypatch.setenv("PYTHONPATH", str(other.parents[1]))
    again = build(site)
    assert again.code == 0, again.output
    assert again.times()["square.html"] != before["square.html"]
