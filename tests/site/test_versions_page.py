"""The page of what changed between versions shows all that was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.versions import Changes
from markup import read, text_of
from sources import ROOT

KNOWN = Changes(ROOT / "docs")
CHANGES = list(KNOWN.list_changes())


@pytest.fixture(scope="module")
def versions_page(site: Path) -> BeautifulSoup:
    return read(site / "reference" / "versions.html")


def test_at_least_three_other_versions_were_measured() -> None:
    assert len(KNOWN.versions) >= 4


def test_each_change_has_its_row(versions_page: BeautifulSoup) -> None:
    rows = versions_page.select(".long-table.versions tbody tr")
    assert len(rows) == len(CHANGES) > 100
    between = {text_of(row.select("td")[0]) for row in rows}
    assert between == {f"{change.before} → {change.since}" for change in CHANGES}


def test_what_is_explained_has_changed() -> None:
    changed = {f"{change.kind}: {change.what}" for change in CHANGES}
    assert KNOWN.explained and not [key for key in KNOWN.explained if key not in changed]
