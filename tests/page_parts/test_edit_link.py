"""'Edit this page' leads to a file of the repository, for an example to its script."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from atlas.page_parts.edit_link import lead


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


def test_other_pages_are_left_to_the_theme() -> None:
    options = {"source_repository": "https://github.com/someone/atlas", "source_branch": "main"}
    assert context_of("guide/which-switch", options) == {}


def test_no_repository_no_link() -> None:
    assert context_of("gallery/graphs/first_graph", {}) == {}
