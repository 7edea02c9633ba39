"""'Edit this page' leads to a file of the repository, for an example to its script."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas.page_parts.edit_link import lead
from tiny.tiny_site import build, written


def context_of(page: str, options: dict[str, str]) -> dict[str, Any]:
    context: dict[str, Any] = {}
    lead(SimpleNamespace(config=SimpleNamespace(html_theme_options=options)), page, "page.html", context, None)
    return context


def test_an_example_leads_to_its_script() -> None:
    options = {"source_repository": "https://github.com/someone/atlas/", "source_branch": "main"}
    assert context_of("gallery/graphs/first_graph", options) == {
        "theme_source_edit_link": "https://github.com/someone/atlas/edit/main/examples/graphs/first_graph.py",
        "theme_source_view_link": "https://github.com/someone/atlas/blob/main/examples/graphs/first_graph.py",
    }


def test_the_theme_shows_these_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the variables are the theme's own. Without them it would lead to the page that Sphinx reads."""
    monkeypatch.setenv("ATLAS_REPOSITORY", "https://github.com/someone/atlas")
    done = build(written(tmp_path, {"docs/text.md": "# Text\n\nText.\n"}))
    assert done.code == 0, done.output
    shown = BeautifulSoup((done.out / "gallery/index.html").read_text(encoding="utf-8"), "html.parser")
    links = [shown.select_one(f".{what}-this-page a")["href"] for what in ("edit", "view")]
    address = "https://github.com/someone/atlas"
    assert links == [f"{address}/{where}/main/examples/GALLERY_HEADER.rst" for where in ("edit", "blob")]
    other = BeautifulSoup((done.out / "text.html").read_text(encoding="utf-8"), "html.parser")
    assert other.select_one(".edit-this-page a")["href"] == f"{address}/edit/main/docs/text.md"


def test_other_pages_are_left_to_the_theme() -> None:
    options = {"source_repository": "https://github.com/someone/atlas", "source_branch": "main"}
    assert context_of("guide/which-switch", options) == {}


def test_no_repository_no_link() -> None:
    assert context_of("gallery/graphs/first_graph", {}) == {}
