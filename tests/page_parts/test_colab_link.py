"""'Open in Colab' stands on the pages of examples, if the sources are on GitHub; else there is no link."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from atlas.page_parts.colab_link import address, offer

GITHUB = "https://github.com/someone/atlas"


def links(repository: str, page: str) -> list[str]:
    document = new_document("page")
    document += nodes.container(classes=["sphx-glr-footer"])
    options = {"source_repository": repository} if repository else {}
    offer(SimpleNamespace(config=SimpleNamespace(html_theme_options=options)), document, page)
    return [link["refuri"] for link in document.findall(nodes.reference)]


def test_an_example_opens_its_notebook() -> None:
    assert links(GITHUB, "gallery/cuda/devices") == [
        "https://colab.research.google.com/github/someone/atlas/blob/notebooks/cuda/devices.ipynb"
    ]


@pytest.mark.parametrize("repository", ["", "https://git.example/someone/atlas", "https://github.com.example/a/b"])
def test_without_github_no_link(repository: str) -> None:
    assert links(repository, "gallery/cuda/devices") == []


@pytest.mark.parametrize("page", ["gallery/index", "gallery/cuda/index", "guide/which-switch", "index"])
def test_a_page_without_a_notebook_has_no_link(page: str) -> None:
    assert address(GITHUB, page) is None
