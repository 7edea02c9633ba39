"""Each page has a description of its own, in whole sentences, for a search engine and for a shared link."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.toolbox import first_sentences
from markup import read
from sources import GENERATED


def of(page: BeautifulSoup) -> list[str]:
    return [tag["content"] for tag in page.select("meta[name='description'], meta[property='og:description']")]


def test_a_page_has_one_description(site: Path, page: str) -> None:
    if page in GENERATED:
        pytest.skip("made by Sphinx, not from a source")
    found = of(read(site / page))
    assert len(found) == 2 and len(set(found)) == 1
    assert 30 < len(found[0]) < 500 and found[0][-1] in ".?!:", found[0]


def test_no_two_pages_have_the_same(site: Path) -> None:
    seen: dict[str, Path] = {}
    for path in sorted(site.rglob("*.html")):
        for found in of(read(path))[:1]:
            assert found not in seen, f"{path} and {seen[found]}"
            seen[found] = path


def test_a_long_first_sentence_stays_whole() -> None:
    assert first_sentences("A sentence of some length. Another.", longest=5) == "A sentence of some length."


@pytest.mark.parametrize("short", ["e.g.", "i.e.", "vs.", "cf.", "Fig.", "Eq.", "E.g."])
def test_a_sentence_does_not_end_at_an_abbreviation(short: str) -> None:
    sentence = f"Use one {short} A tensor."
    assert first_sentences(f"{sentence} Next.", longest=10) == sentence


def test_a_word_that_only_looks_like_one_ends_it() -> None:
    assert first_sentences("It canvs. A tensor.", longest=10) == "It canvs."
