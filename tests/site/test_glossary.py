"""Each word of the glossary has its Chinese term, an explanation, and an example whose output was compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from markup import read, text_of

ASKED_FOR = {
    *("activation memory budget", "autocast", "CopySlices", "dispatcher", "double backward", "GradScaler", "hook"),
    *("leaf", "memory format", "meta tensor", "min-cut partitioner", "no_grad", "straight-through estimator"),
    *("subgradient", "undefined gradient"),
}
LINKED = ["memory/grad_scaler", "memory/memory_under_compile", "tensors/numpy_and_torch", "reference/formulas"]
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def glossary(site: Path) -> BeautifulSoup:
    return read(site / "reference" / "glossary.html")


def words(page: BeautifulSoup) -> list[str]:
    """The terms, in their order."""
    return [text_of(term) for term in page.select("dl.glossary > dt")]


def incomplete(page: BeautifulSoup) -> list[str]:
    """The terms that lack a translation at their beginning, an explanation, or an example."""
    entries = page.select("dl.glossary > dd")
    return [
        word
        for word, entry in zip(words(page), entries, strict=True)
        if not CHINESE.search(text_of(entry.select_one("p > em:first-child") or page.new_tag("em")))
        or len([text for text in entry.find_all("p", recursive=False) if not text_of(text).startswith("→")]) < 2
        or not entry.select(".highlight-pycon .gp")
    ]


def test_the_words_are_there_in_order(glossary: BeautifulSoup) -> None:
    found = words(glossary)
    assert set(found) >= ASKED_FOR
    assert found == sorted(set(found), key=str.lower)


def test_each_word_has_a_translation_an_explanation_and_an_example(glossary: BeautifulSoup) -> None:
    assert not incomplete(glossary)


def test_the_pages_that_say_more_are_linked(glossary: BeautifulSoup) -> None:
    addresses = " ".join(link["href"] for link in glossary.select("dl.glossary a.reference.internal"))
    assert not [page for page in LINKED if page.removeprefix("reference/") + ".html" not in addresses]


def test_the_list_by_subject_has_each_word_once(glossary: BeautifulSoup) -> None:
    listed = [
        text_of(link) for link in glossary.select("#glossary .terms-index a") if link["href"].startswith("#term-")
    ]
    assert sorted(listed) == sorted(words(glossary))
