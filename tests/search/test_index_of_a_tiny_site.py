"""What a build writes into ``search-index.js``, and what it keeps of pages that it does not write again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tiny.tiny_site import Build, Snapshot, build, written

BEGINS = "window.atlasSearchIndex="
ERROR = """# grad can be implicitly created only for scalar outputs

```{index} ! single: backward on a vector
```

The root has several numbers.

The message:

```
RuntimeError: grad can be implicitly created only for scalar outputs
ValueError: too short
```

Older versions: *grad can be created for scalars alone, and for nothing else*.

## The fix

Take the sum. Then call backward.
"""
LESSON = "# Leaves\n\nA leaf has no history.\n\n## Views of a leaf\n\nAn antediluvian word.\n\n## Über-long heading\n\nText.\n"
SEARCH = "---\norphan: true\n---\n# Search\n\nAsk.\n\n```{search-box} Ask here\n```\n\n```{all-pages}\n```\n"
PAGES = {"docs/not_a_scalar.md": ERROR, "docs/leaves.md": LESSON, "docs/search.md": SEARCH}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    done = build(written(tmp_path_factory.mktemp("search") / "site", PAGES))
    assert done.code == 0, done.output
    return done, Snapshot.of(done.site)


def index(built: Build) -> dict[str, Any]:
    text = (built.out / "search-index.js").read_text(encoding="utf-8")
    assert text.startswith(BEGINS)
    return json.loads(text.removeprefix(BEGINS))


def decoded(coded: str) -> list[str]:
    """The words, as the browser reads them: each begins with so many letters of the one before."""
    words = [""]
    for word in coded.split(" "):
        words.append(words[-1][: int(word[0], 36)] + word[1:])
    return words[1:]


def page(built: Build, address: str) -> list[Any]:
    (found,) = (page for page in index(built)["pages"] if page[0] == address)
    return found


def test_a_page_has_its_title_its_lead_and_its_parts(built: Build) -> None:
    address, title, lead, kind, sections = page(built, "leaves.html")
    assert (title, lead, kind) == ("Leaves", "A leaf has no history.", "r")
    assert sections[0] == ["Views of a leaf"]  # its anchor is made of it
    heading, anchor = sections[1]
    assert heading == "Über-long heading" and f'id="{anchor}"' in (built.out / address).read_text(encoding="utf-8")


def test_a_page_about_an_error_brings_its_message_and_its_fix(built: Build) -> None:
    found = index(built)
    number = [page[0] for page in found["pages"]].index("not_a_scalar.html")
    assert found["fixes"] == {str(number): "Take the sum. Then call backward."}
    assert [message for at, *message in found["messages"] if at == number] == [
        ["grad can be implicitly created only for scalar outputs"],
        ["grad can be created for scalars alone, and for nothing else"],
    ]


def test_the_page_of_the_search_is_not_in_it(built: Build) -> None:
    assert not [page for page in index(built)["pages"] if page[0] == "search.html"]


def test_after_an_edit_the_other_pages_are_still_found(built: Build) -> None:
    before = index(built)
    text = LESSON.replace("antediluvian", "prelapsarian").replace("# Leaves", "# Foliage", 1)
    (built.site / "docs" / "leaves.md").write_text(text, encoding="utf-8")
    again = build(built.site)
    after = index(again)
    assert [word in decoded(before["words"]) for word in ("antediluvian", "prelapsarian")] == [True, False]
    assert [word in decoded(after["words"]) for word in ("antediluvian", "prelapsarian")] == [False, True]
    assert page(again, "leaves.html")[1] == "Foliage"
    assert after["fixes"] == before["fixes"] and after["messages"] == before["messages"]
    assert ">Foliage</a>" in (again.out / "search.html").read_text(encoding="utf-8")


def test_a_page_that_is_gone_is_not_found(built: Build) -> None:
    assert ">Leaves</a>" in (built.out / "search.html").read_text(encoding="utf-8")
    (built.site / "docs" / "leaves.md").unlink()
    again = build(built.site)
    assert not [page for page in index(again)["pages"] if page[0] == "leaves.html"]
    assert ">Leaves</a>" not in (again.out / "search.html").read_text(encoding="utf-8")


def test_nothing_is_left_of_sphinxs_search(built: Build) -> None:
    assert not (built.out / "searchindex.js").exists()
    assert "sphinx_highlight" not in (built.out / "leaves.html").read_text(encoding="utf-8")


def test_without_javascript_a_box_leads_to_the_list(built: Build) -> None:
    box = (built.out / "search.html").read_text(encoding="utf-8")
    assert '<form class="search-here" role="search" action="' in box and 'name="q"' in box
