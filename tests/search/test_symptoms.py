"""The list of errors: each page about an error is in one group, and the list is written again when what it lists changes."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from types import SimpleNamespace

import pytest

from atlas.pages import read_pages
from atlas.search import gather, symptoms

ERRORS = read_pages().errors
NAMES = [name for names in ERRORS.values() for name in (each.removeprefix("errors/") for each in names)]


def env(*pages: str) -> SimpleNamespace:
    """An environment that has read these pages of the chapter, and its list."""
    found = {
        f"gallery/errors/{page}": gather.Found(page, "", ["a symptom"], "", [], [], [], "", {}) for page in pages
    }
    known = {"gallery/errors/index", *found}
    return SimpleNamespace(atlas_search=found, found_docs=known, atlas_symptoms="gallery/errors/index")


APP = SimpleNamespace(builder=SimpleNamespace(format="html"))


def test_a_page_is_in_one_group() -> None:
    assert not [name for name, times in Counter(NAMES).items() if times > 1]


def test_a_page_without_a_group_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(symptoms, "logger", SimpleNamespace(error=lambda text, *parts: said.append(text % parts)))
    symptoms.check(APP, env(NAMES[0], "went_wrong"))
    (error,) = said
    assert error.startswith("examples/errors/went_wrong.py: name it in a group of ERRORS")


def test_the_list_is_written_again_when_a_symptom_changes() -> None:
    pages = env(NAMES[0])
    assert symptoms.pages_to_write(APP, pages) == ["gallery/errors/index"]
    assert not symptoms.pages_to_write(APP, pages)
    pages.atlas_search[f"gallery/errors/{NAMES[0]}"].symptoms.append("another")
    assert symptoms.pages_to_write(APP, pages) == ["gallery/errors/index"]


def test_what_is_not_read_is_not_listed() -> None:
    """A page of another chapter may be named, and a small site has not all pages."""
    listed = {title: [page for page, _found in pages] for title, pages in symptoms.groups(env(NAMES[0]))}
    assert list(listed) == list(ERRORS) and list(chain(*listed.values())) == [f"gallery/errors/{NAMES[0]}"]
