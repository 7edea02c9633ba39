"""A tiny site whose sources are somewhere, built for the links that lead there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import build, written

EXAMPLE = '"""\nA page\n======\n\nText.\n"""\n\nprint(1)\n'

#: Of a site with sources at this address (empty: nowhere), the page of this name.
PageOf = Callable[[str, str], BeautifulSoup]


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> PageOf:
    """Pages of tiny sites, each built once."""

    @cache
    def built(repository: str) -> Path:
        files = {"examples/cuda/devices.py": EXAMPLE, "docs/guide/which.md": "# Which\n\nText.\n"}
        site = written(tmp_path_factory.mktemp("sources"), files)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ATLAS_REPOSITORY", repository)
            done = build(site)
        assert done.code == 0, done.output
        return done.out

    def page(repository: str, name: str) -> BeautifulSoup:
        return BeautifulSoup((built(repository) / f"{name}.html").read_bytes(), "html.parser")

    return page
