"""Cards of a chapter and learning paths: what each page answers, minutes that are counted, and what to read before it."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from tiny.tiny_site import Build, Snapshot, build, written

PAGE = '''r"""
{title}
{line}

.. in-short::

   {answer}
"""

# %%
# {prose}

{code}

# %%
# See also
# --------
# {see_also}
'''
ANSWER = "``retain_grad()`` keeps a gradient. It must be called before:"
REF = ":ref:`sphx_glr_gallery_{}.py`"


def example(name: str, *, words: int = 3, lines: int = 1, before: tuple[str, ...] = (), answer: str = ANSWER) -> str:
    title = f"Page {name}: the rest"
    return PAGE.format(
        title=title,
        line="=" * len(title),
        answer=answer,
        prose="\n# ".join(["word " * 10] * (words // 10) or ["word"]),
        code="import torch\n" + "x = torch.ones(2)\n\n" * (lines - 1),
        see_also="\n# ".join(f"- {REF.format(page)}, and {REF.format('memory_five')}." for page in before)
        or "- Nothing.",
    )


PAGES = {
    "graphs/one": example("one"),
    "graphs/two": example("two", before=("graphs_one", "graphs_three")),
    "graphs/three": example("three", words=2000, lines=100, before=("graphs_two", "graphs_one")),
    "memory/four": example("four", before=("graphs_three",)),
    "memory/five": example("five", before=("memory_four", "graphs_three", "graphs_one", "graphs_two")),
}


PATHS = """# Learning paths

```{learning-path}
graphs/two
graphs/one
```

```{learning-path}
graphs/one: Read it for its `code`.
```
"""


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    scripts = {f"examples/{name}.py": text for name, text in PAGES.items()}
    site = written(tmp_path_factory.mktemp("site"), scripts | {"docs/guide/paths.md": PATHS})
    done = build(site)
    assert done.code == 0, done.output
    return done, Snapshot.of(site)


def cards(out: Path, chapter: str) -> list[Tag]:
    text = (out / f"gallery/{chapter}/index.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").select("article .cards > .card")


def said(cards: list[Tag], of: str) -> list[str]:
    return [card.select_one(f".card-{of}").get_text() for card in cards]


def test_pages_stand_in_the_order_of_the_navigation_and_nothing_of_sphinx_gallery_does(built: Build) -> None:
    found = cards(built.out, "graphs")
    assert said(found, "title") == ["Page one: the rest", "Page three: the rest", "Page two: the rest"]
    text = (built.out / "gallery/graphs/index.html").read_text(encoding="utf-8")
    assert "sphx-glr-thumb" not in text and "sg-tag-list" not in text


def test_a_card_has_the_answer_with_its_code(built: Build) -> None:
    answer = cards(built.out, "graphs")[0].select_one(".card-answer")
    assert answer.get_text() == "retain_grad() keeps a gradient. It must be called before."
    assert answer.code.get_text() == "retain_grad()"


def test_minutes_are_counted(built: Build) -> None:
    """2000 words at 150 and 100 lines at 10 a minute are 23 minutes."""
    minutes = [text.partition(" · ")[0] for text in said(cards(built.out, "graphs"), "small")]
    assert minutes == ["5 min", "25 min", "5 min"]
    page = (built.out / "gallery/graphs/index.html").read_text(encoding="utf-8")
    assert "3 pages, 35 min." in page


def test_what_to_read_before_is_earlier_and_named_by_the_page(built: Build) -> None:
    """Pages are read as one, three, two: by name, as the order of reading does not know them."""
    texts = said([*cards(built.out, "graphs"), *cards(built.out, "memory")], "small")
    assert [text.partition("Before: ")[2] for text in texts] == [
        "",
        "Page one",
        "Page one, Page three",
        "Page three, Page one",
        "Page three",
    ]
    links = cards(built.out, "memory")[1].select(".card-small a")
    assert [link["href"] for link in links] == ["../graphs/three.html"]


def paths(out: Path) -> BeautifulSoup:
    return BeautifulSoup((out / "guide/paths.html").read_text(encoding="utf-8"), "html.parser")


def test_a_path_has_its_pages_in_its_own_order(built: Build) -> None:
    first, second = paths(built.out).select("ol.path")
    links = [link["href"] for link in first.select(".card-title a")]
    assert links == ["../gallery/graphs/two.html", "../gallery/graphs/one.html"]
    assert said(first.select("li"), "answer") == [ANSWER.replace("``", "").replace(":", ".")] * 2
    assert said(second.select("li"), "answer") == ["Read it for its code."]
    heads = [head.get_text() for head in paths(built.out).select(".map-head")]
    assert heads == ["2 pages, 10 min.", "1 pages, 5 min."]


def test_cards_follow_their_page(built: Build) -> None:
    (built.site / "examples/graphs/one.py").write_text(example("one", answer="Another answer."), encoding="utf-8")
    before = built.times()
    again = build(built.site)
    assert again.code == 0, again.output
    changed = {page for page, time in again.times().items() if before.get(page) != time}
    assert {page for page in changed if fnmatch(page, "g*/*/index.html")} == {"gallery/graphs/index.html"}
    assert said(cards(built.out, "graphs"), "answer")[0] == "Another answer."
    assert said(paths(built.out).select("ol.path li"), "answer")[1] == "Another answer."


def test_a_wrong_list_fails_the_build_on_whichever_page_it_stands(built: Build) -> None:
    wrong = {"guide/paths": "graphs/six", "other": "graphs/two\ngraphs/two"}
    for name, pages in wrong.items():
        (built.site / f"docs/{name}.md").write_text(f"# Page {name}\n\n```{{learning-path}}\n{pages}\n```\n")
    index = built.site / "docs/index.md"
    index.write_text(index.read_text().replace("guide/paths\n", "guide/paths\nother\n"))
    again = build(built.site)
    assert again.code != 0
    assert "paths.md:3: ERROR: learning-path: there is no page graphs/six" in again.output
    assert "other.md:3: ERROR: learning-path: it has graphs/two twice" in again.output
