"""A learning path lists pages in its own order, with what their cards say, and a wrong name fails the build."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, Snapshot, build, written

EXAMPLE = '''r"""
Page {name}
==========

.. in-short::

   The answer of page {name}.
"""

# %%
# Words.

import torch
'''
PATHS = """# Learning paths

```{learning-path}
graphs/two
graphs/one
```

```{learning-path}
graphs/one
```
"""
PAGE = "docs/guide/paths.md"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    scripts = {f"examples/graphs/{name}.py": EXAMPLE.format(name=name) for name in ("one", "two")}
    site = written(tmp_path_factory.mktemp("site"), scripts | {PAGE: PATHS})
    done = build(site)
    assert done.code == 0, done.output
    return done, Snapshot.of(site)


def paths(out: Path) -> BeautifulSoup:
    return BeautifulSoup((out / "guide/paths.html").read_text(encoding="utf-8"), "html.parser")


def test_the_pages_stand_in_the_order_of_the_path(built: Build) -> None:
    first, second = paths(built.out).select("ol.path")
    assert [link["href"] for link in first.select(".card-title a")] == [
        "../gallery/graphs/two.html",
        "../gallery/graphs/one.html",
    ]
    assert [text.get_text() for text in first.select(".card-answer")] == [
        "The answer of page two.",
        "The answer of page one.",
    ]
    assert len(second.select("li")) == 1
    heads = [head.get_text() for head in paths(built.out).select(".map-head")]
    assert heads == ["2 pages, 10 min.", "1 pages, 5 min."]


def test_the_line_about_read_pages_stands_once(built: Build) -> None:
    assert len(paths(built.out).select(".read-pages")) == 1


def test_it_follows_its_pages(built: Build) -> None:
    script = built.site / "examples/graphs/one.py"
    script.write_text(script.read_text(encoding="utf-8").replace("The answer of", "Another of"), encoding="utf-8")
    again = build(built.site)
    assert again.code == 0, again.output
    said = [text.get_text() for text in paths(built.out).select(".card-answer")]
    assert said == ["The answer of page two.", "Another of page one.", "Another of page one."]


def test_lists_on_two_pages_are_both_checked(built: Build) -> None:
    for name, wrong in (("guide/paths", "graphs/three"), ("other", "graphs/four")):
        (built.site / f"docs/{name}.md").write_text(f"# Page {name}\n\n```{{learning-path}}\n{wrong}\n```\n")
    index = built.site / "docs/index.md"
    index.write_text(index.read_text().replace("guide/paths\n", "guide/paths\nother\n"))
    again = build(built.site)
    assert again.code != 0
    assert "paths.md:3: ERROR: learning-path: there is no page graphs/three" in again.output
    assert "other.md:3: ERROR: learning-path: there is no page graphs/four" in again.output


@pytest.mark.parametrize(
    ("wrong", "said"), [("graphs/three", "there is no page graphs/three"), ("graphs/two", "it has graphs/two twice")]
)
def test_a_wrong_name_fails_the_build(built: Build, wrong: str, said: str) -> None:
    (built.site / PAGE).write_text(PATHS.replace("graphs/one\n```\n\n", f"{wrong}\n```\n\n"), encoding="utf-8")
    again = build(built.site)
    assert again.code != 0
    assert f"paths.md:3: ERROR: learning-path: {said}" in again.output
