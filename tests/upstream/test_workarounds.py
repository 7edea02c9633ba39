"""Each workaround mends its bug, and the bug is there without it. Where the second fails, the workaround may be deleted."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup, Tag

from atlas import upstream
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


def test_a_newer_version_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose number has more digits. The tests above then say whether the bug is still there."""
    done: list[object] = []
    app = SimpleNamespace(connect=lambda *what: done.append(what), add_transform=done.append)
    upstream.setup(app)
    assert len(done) == 2
    for step in ((0, 1, ".0"), (0, 10, "rc1"), (1, 0, ".0")):
        newer = {package: newer_than(package, *step) for package in ("myst-nb", "myst-parser")}
        monkeypatch.setattr(upstream, "version", newer.get)
        upstream.setup(app)
    assert len(done) == 2


def newer_than(package: str, major: int, minor: int, end: str) -> str:
    old = version(package).split(".")
    return f"{int(old[0]) + major}.{int(old[1]) + minor}{end}"
