"""The index of the built site: small, and each of its links leads to a place that is there."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import error_pages
from atlas.search_index import make_anchor
from markup import read
from sources import GENERATED

BEGINS = "window.atlasSearchIndex="
A_PAGE = 0.56  # KiB, as nginx sends it


@pytest.fixture(scope="module")
def index(site: Path) -> dict[str, Any]:
    return json.loads((site / "search-index.js").read_text(encoding="utf-8").removeprefix(BEGINS))


def test_it_is_small(site: Path, index: dict[str, Any]) -> None:
    size = len(gzip.compress((site / "search-index.js").read_bytes(), 5)) / 1024
    assert size <= A_PAGE * len(index["pages"]), f"{size:.1f} KiB: see _LITTLE in conf/atlas/search_index.py"


def test_each_page_is_in_it(index: dict[str, Any], all_pages: list[str]) -> None:
    assert {page[0] for page in index["pages"]} == set(all_pages) - GENERATED - {"search.html"}


def test_each_part_is_where_its_link_leads(index: dict[str, Any], site: Path) -> None:
    lost = []
    for address, *_rest, sections in index["pages"]:
        ids = {found["id"] for found in read(site / address).select("[id]")} if sections else set()
        lost += [
            (address, part) for part in sections if (part[1] if len(part) > 1 else make_anchor(part[0])) not in ids
        ]
    assert not lost


def test_each_row_is_where_its_link_leads(index: dict[str, Any], site: Path) -> None:
    ((number, begins),) = index["rows"].items()
    address = index["pages"][int(number)][0]
    ids = Counter(found["id"].startswith(begins) for found in read(site / address).select("tr[id]"))
    assert begins == "op-" and ids[True] > 500 and not ids[False]


def test_each_page_about_an_error_has_a_card(index: dict[str, Any], root: Path) -> None:
    cards = {index["pages"][int(number)][0] for number in index["fixes"]}
    own = {index["pages"][message[0]][0] for message in index["messages"] if len(message) == 2}
    assert cards == own == {page.address for page in error_pages.all_of(root)}
