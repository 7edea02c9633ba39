"""The tags of the site's pages are few and used, and what is wrong in their file is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.related.tags import FILE, faults, read
from sources import ROOT, sources_of_examples

GOOD = """tags = ["one", "two"]

[a]
first = ["one"]
second = ["two", "one"]

[b]
third = ["one"]
"""
PAGES = ["a/first", "a/second", "b/third"]


def found(tmp_path: Path, text: str, pages: list[str] = PAGES) -> list[tuple[str, str]]:
    file = tmp_path / "examples" / FILE
    file.parent.mkdir()
    file.write_text(text)
    return list(faults(file, pages))


def test_those_of_the_site_are_right() -> None:
    pages = [script.removesuffix(".py") for script in sources_of_examples()]
    assert not list(faults(ROOT / "examples" / FILE, pages))


def test_those_of_the_site_are_few_and_each_tells_pages_apart() -> None:
    tags = read((ROOT / "examples" / FILE).read_text(encoding="utf-8"))
    assert len(tags.words) <= 16
    times = {word: sum(word in words for words in tags.of.values()) for word in tags.words}
    assert min(times.values()) >= 4 and max(times.values()) <= 0.6 * len(tags.of), times


def test_pages_about_errors_have_their_tag() -> None:
    tags = read((ROOT / "examples" / FILE).read_text(encoding="utf-8"))
    assert [page for page, words in tags.of.items() if "error" in words] == [
        page for page in tags.of if page.startswith("errors/")
    ]


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ('third = ["one"]', "", "examples/b/third.py", 'add third = ["..."] below [b] to examples/tags.toml'),
        ('third = ["one"]', "third = []", "examples/b/third.py", "this page has no tag"),
        ('third = ["one"]', 'third = ["own"]', "examples/tags.toml:8", "there is no tag 'own': choose from one, two"),
        ("[b]\nthird", '[b]\nthird = ["one"]\nfirst', "examples/tags.toml:9", "there is no page b/first"),
        ('["two", "one"]', '["two", "one", "one"]', "examples/tags.toml:5", "each once"),
        ('["one", "two"]', '["one",\n"three",\n"two"]', "examples/tags.toml:2", "no page has the tag 'three'"),
        ("[b]", "[b", "examples/tags.toml", "line 7"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, where: str, said: str) -> None:
    assert GOOD.count(old) == 1
    ((place, fault),) = found(tmp_path, GOOD.replace(old, new))
    assert place == where and said in fault


def test_four_tags_are_too_many(tmp_path: Path) -> None:
    text = GOOD.replace('"two"]\n', '"two", "x", "y"]\n', 1).replace('["one"]\ns', '["one", "two", "x", "y"]\ns')
    assert found(tmp_path, text) == [("examples/tags.toml:4", "a page has at most 3 tags, each once")]


def test_nothing_is_wrong_with_the_good_one(tmp_path: Path) -> None:
    assert found(tmp_path, GOOD) == []
