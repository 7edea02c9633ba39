"""What must be on pages and beside them, whichever file Sphinx took for their source and wherever its settings lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bs4 import BeautifulSoup

from tiny.tiny_site import ROOT, Build

Page = Callable[[str], BeautifulSoup]


def test_the_script_is_the_page_and_the_notebook_a_download(good: Build, page: Page) -> None:
    """Left alone, MyST-NB claims the notebooks beside the gallery's pages, which then have no figures and no outputs."""
    assert (good.site / "docs" / "gallery" / "basics" / "plots.ipynb").is_file()
    plots = page("plots")
    assert len(plots.select("article svg.plot")) == 3
    assert plots.select("article .sphx-glr-script-out") and not plots.select("article .cell")
    (notebook,) = plots.select('.sphx-glr-footer a[href$=".ipynb"]')
    assert (good.out / "gallery" / "basics" / notebook["href"]).resolve().is_file()


def test_paths_lead_from_the_sources_and_from_the_settings(good: Build, page: Page) -> None:
    """Sphinx-gallery resolves examples_dirs from the source folder, and Sphinx html_static_path from that of conf.py."""
    assert (good.site / "docs" / "gallery" / "basics" / "one_assert.rst").is_file()
    for style in ("static/atlas.css", "static/plot.css", "drawgrad/web/graph.css"):
        copied = good.out / "_static" / Path(style).name
        assert copied.read_bytes() == (ROOT / "conf" / style).read_bytes()
    assert page("plots").select('link[rel=stylesheet][href*="_static/site.css"]')


def test_eval_shows_the_value(page: Page) -> None:
    """{eval} needs nb_execution_mode = "inline"."""
    assert "Three squared is 9.0." in page("guide").get_text()
