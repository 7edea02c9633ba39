"""Each workaround mends its bug, and the bug is there without it. Where the second fails, the workaround may be deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from tiny.tiny_site import Build, build, copy_conf, written

TABLE = "# Table\n\n```{table}\n:widths: 25 75\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n```\n"
SITE = {"docs/table.md": TABLE, "docs/other.md": "# Other\n\nText.\n"}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of the site, with the libraries left alone."""
    conf = copy_conf(tmp_path_factory.mktemp("bare"))
    module = conf / "atlas" / "upstream.py"
    text, found = re.subn(r"(?m)^(def setup.*)$", r"\1\n    return", module.read_text(encoding="utf-8"))
    assert found == 1
    module.write_text(text, encoding="utf-8")
    return conf


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build(written(tmp_path_factory.mktemp("mended"), SITE))


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory, bare: Path) -> Build:
    return build(written(tmp_path_factory.mktemp("left-alone"), SITE), conf=bare)


def read(built: Build, page: str) -> BeautifulSoup:
    assert built.code == 0, built.output
    return BeautifulSoup((built.out / page).read_text(encoding="utf-8"), "html.parser")


def test_a_first_build_finds_mystnb_css_when_it_writes_pages(mended: Build, left_alone: Build) -> None:
    """Then the sheet is a part of the site's one. Else it has a link of its own, without a checksum."""
    links = [read(built, "other.html").select('link[href*="mystnb."]') for built in (mended, left_alone)]
    assert not links[0]
    assert links[1][0]["href"].endswith(".css")


def widths(built: Build) -> list[Tag]:
    return read(built, "table.html").select("article table col[style*=width]")


def test_a_table_has_the_widths_that_it_was_given(mended: Build, left_alone: Build) -> None:
    assert len(widths(mended)) == 2
    assert widths(left_alone) == []
