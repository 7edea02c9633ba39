"""Every image and every drawn graph says in words what it shows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from markup import CARDS, FIGURES, read, text_of

_FILE_NAME = re.compile(r"sphx[_-]glr|\.(?:png|svg|jpe?g|gif|webp)$|^[\w-]+$", re.IGNORECASE)


def words_for(figure: Tag) -> str:
    """What a screen reader says of a figure."""
    return (figure.get("aria-label" if figure.name == "svg" else "alt") or "").strip()


def faults(page: BeautifulSoup) -> list[str]:
    figures = page.select(FIGURES)
    found = []
    for figure in figures:
        words = words_for(figure)
        if not words:
            found.append(f"no words for {str(figure)[:100]}")
        elif _FILE_NAME.search(words):
            found.append(f"a file name, or a single word, for words: {words}")
        if figure.name == "svg" and figure.get("role") != "img":
            found.append(f"a drawing that is not one image to a screen reader: {words or str(figure)[:100]}")
    twice = [words for words, times in Counter(map(words_for, figures)).items() if words and times > 1]
    return found + [f"two figures have the same words: {words}" for words in twice]


def faults_of_cards(page: BeautifulSoup) -> list[str]:
    """A card's picture is decoration, and rightly has no words; but then the card's link must have some."""
    cards = page.select(CARDS)
    found = [f"no link with words in {str(card)[:100]}" for card in cards if not any(map(text_of, card.select("a")))]
    return found + [
        f"no alt in {image}" for card in cards for image in card.select("img") if image.get("alt") is None
    ]


def test_figures_have_words(site: Path, page: str) -> None:
    found = faults(read(site / page))
    assert not found


def test_cards_have_words(site: Path, page: str) -> None:
    found = faults_of_cards(read(site / page))
    assert not found


def test_figures_without_words_are_found(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<img src="a.png" alt=""><img src="b.png" alt="sphx_glr_b_001"><img src="c.png" alt="loss-curve.svg">'
        '<svg class="graph" aria-label="A graph of two nodes"></svg><img src="d.png" alt="A graph of two nodes">'
    )
    assert faults(read(bad)) == [
        'no words for <img alt="" src="a.png"/>',
        "a file name, or a single word, for words: sphx_glr_b_001",
        "a file name, or a single word, for words: loss-curve.svg",
        "a drawing that is not one image to a screen reader: A graph of two nodes",
        "two figures have the same words: A graph of two nodes",
    ]


def test_cards_without_words_are_found(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text('<li class="card"><img src="a.png"><a href="a.html"><span></span></a></li>')
    assert len(faults_of_cards(read(bad))) == 2
