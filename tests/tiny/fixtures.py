"""The tiny sites, each built once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, Snapshot, build, copy_of

GOOD = Path(__file__).with_name("good")


@pytest.fixture(scope="session")
def twice(tmp_path_factory: pytest.TempPathFactory) -> list[Build]:
    """The good site, built in two folders, each for the first time: in a forked process, and in a new one.

    The new one has another hash seed, nothing is imported in it before its time, and several processes read and write it.
    """
    sites = [copy_of(GOOD, tmp_path_factory.mktemp(name)) for name in ("good", "a-longer-name")]
    with ThreadPoolExecutor() as pool:
        return list(
            pool.map(
                lambda site, jobs, real: build(site, options=jobs, real=real),
                sites,
                ([], ["--jobs=3"]),
                (False, True),
            )
        )


@pytest.fixture(scope="session")
def good(twice: list[Build]) -> Build:
    """The good site, which must build without a warning."""
    assert twice[0].code == 0, twice[0].output
    return twice[0]


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
