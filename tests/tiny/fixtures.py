"""The tiny sites, each built once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, Snapshot, build, copy_of

GOOD = Path(__file__).with_name("good")


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The good site, which must build without a warning."""
    done = build(copy_of(GOOD, tmp_path_factory.mktemp("good")))
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="session")
def page(good: Build) -> Callable[[str], BeautifulSoup]:
    """A page of the good site, by its name; the examples' pages by the names of their scripts."""

    @cache
    def read(name: str) -> BeautifulSoup:
        path = good.out / f"{name}.html"
        if not path.is_file():
            path = good.out / "gallery" / "basics" / f"{name}.html"
        return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")

    return read


@pytest.fixture
def built(once: tuple[Build, Snapshot]) -> Build:
    """The site of the test's file as it was built first: each test finds the same.

    Its file has the fixture ``once``, of scope "module", which builds it.
    """
    once[1].restore()
    return once[0]
