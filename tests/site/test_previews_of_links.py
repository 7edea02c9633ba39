"""The texts that links show: small, one for each page of text, and for places that are there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from atlas.site_files import PREVIEWS as FILE
from markup import read

EACH = 0.12  # KiB for each text, as nginx sends it
WITHOUT = {"404.html", "genindex.html"}


@pytest.fixture(scope="module")
def previews(site: Path) -> dict[str, list[str]]:
    return json.loads((site / FILE).read_text(encoding="utf-8").partition("=")[2])


def test_it_is_small(site: Path, previews: dict[str, list[str]]) -> None:
    assert len(gzip.compress((site / FILE).read_bytes(), 5)) / 1024 <= EACH * len(previews)


def test_each_page_has_a_text_that_can_be_read(previews: dict[str, list[str]], all_pages: list[str]) -> None:
    assert not set(all_pages) - WITHOUT - previews.keys()
    assert not [address for address, (_title, text) in previews.items() if "\\" in text or len(text) < 20]


def test_each_term_of_the_glossary_has_one(previews: dict[str, list[str]], site: Path) -> None:
    page = "reference/glossary.html"
    anchors = {f"{page}#{term['id']}" for term in read(site / page).select("dl.glossary > dt[id]")}
    assert len(anchors) > 50 and {address for address in previews if "#" in address} == anchors
