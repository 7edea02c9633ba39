"""What a build writes into ``search-index.js`` and into lists of symptoms, also when only some pages are read again."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas.pages import read_pages
from tiny.tiny_site import Build, Snapshot, build, written

BEGINS = "window.atlasSearchIndex="
GROUPS = read_pages().errors
ERRORS = [page for pages in GROUPS.values() for page in pages if page.startswith("errors/")]
NAME, OTHER = ERRORS[0], "errors/not_in_a_group"
ERROR = '''"""
grad can be implicitly created only for scalar outputs
======================================================

.. index::
   ! single: backward on a vector

The root has several numbers.
"""

print("RuntimeError: grad can be implicitly created only for scalar outputs")
print("ValueError: too short")

# %%
# Older versions: *grad can be created for scalars alone, and for nothing else*.
#
# The fix
# -------
# Take the sum. Then call backward.

print(1)
'''
LESSON = "# Leaves\n\nA leaf has no history.\n\n## Views of a leaf\n\nAn antediluvian word.\n\n## Über-long heading\n\nText.\n"
CHINESE = f"# 叶子\n\n{'没有空格的中文句子' * 20}。\n"
SEARCH = "---\norphan: true\n---\n# Search\n\nAsk.\n\n```{search-box} Ask here\n```\n\n```{all-pages}\n```\n"
LIST = "# A list\n\nText.\n\n```{symptoms}\n```\n"
PAGES = {
    f"examples/{NAME}.py": ERROR,
    f"examples/{OTHER}.py": ERROR.replace("backward on", "something about").replace("grad can", "Grad can"),
    "docs/leaves.md": LESSON,
    "docs/chinese.md": CHINESE,
    "docs/search.md": SEARCH,
    "docs/list.md": LIST,
    "docs/second_list.md": LIST,
}
ADDRESS = f"gallery/{NAME}.html"


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


def text_of(built: Build, address: str) -> str:
    return (built.out / address).read_text(encoding="utf-8")


def listed(built: Build, address: str) -> dict[str, list[str]]:
    """The list of symptoms on a page: the titles of its groups, and what each page in it says."""
    folds = BeautifulSoup(text_of(built, address), "html.parser").select(".symptoms details")
    return {
        fold.summary.get_text(): [" ".join(item.get_text(" ").split()) for item in fold.select("li")]
        for fold in folds
    }


def test_a_page_has_its_title_its_lead_and_its_parts(built: Build) -> None:
    address, title, lead, kind, sections = page(built, "leaves.html")
    assert (title, lead, kind) == ("Leaves", "A leaf has no history.", "r")
    assert sections[0] == ["Views of a leaf"]  # its anchor is made of it
    heading, anchor = sections[1]
    assert heading == "Über-long heading" and f'id="{anchor}"' in text_of(built, address)


def test_a_lead_without_a_space_is_cut(built: Build) -> None:
    assert page(built, "chinese.html")[2] == ("没有空格的中文句子" * 20)[:95] + " …"


def test_a_page_about_an_error_brings_its_message_and_its_fix(built: Build) -> None:
    found = index(built)
    number = [page[0] for page in found["pages"]].index(ADDRESS)
    assert page(built, ADDRESS)[3] == "e"
    assert found["fixes"][str(number)] == "Take the sum. Then call backward."
    assert [message for at, *message in found["messages"] if at == number] == [
        ["grad can be implicitly created only for scalar outputs"],
        ["grad can be created for scalars alone, and for nothing else"],
    ]


def test_a_page_of_the_real_site_is_in_one_group() -> None:
    assert not [
        name for name, times in Counter(page for pages in GROUPS.values() for page in pages).items() if times > 1
    ]


def test_the_list_of_symptoms_has_what_is_read_and_in_a_group(built: Build) -> None:
    found = listed(built, "list.html")
    assert len(found) == len(GROUPS) and found == listed(built, "second_list.html")
    assert [said for group in found.values() for said in group] == [
        "grad can be implicitly created only for scalar outputs backward on a vector"
    ]


def test_an_edit_of_some_pages_is_found_and_the_rest_is_kept(built: Build) -> None:
    before = index(built)
    text = LESSON.replace("antediluvian", "prelapsarian").replace("# Leaves", "# Foliage", 1)
    (built.site / "docs" / "leaves.md").write_text(text, encoding="utf-8")
    (built.site / "docs" / "chinese.md").unlink()
    (built.site / f"examples/{NAME}.py").write_text(ERROR.replace("on a vector", "on a matrix"), encoding="utf-8")
    (built.site / "docs" / "list.md").rename(built.site / "docs" / "moved_list.md")
    front = built.site / "docs" / "index.md"
    front.write_text(
        front.read_text().replace("\nlist\n", "\nmoved_list\n").replace("chinese\n", ""), encoding="utf-8"
    )
    again = build(built.site)
    assert again.code == 0, again.output
    after = index(again)
    assert [word in decoded(before["words"]) for word in ("antediluvian", "prelapsarian")] == [True, False]
    assert [word in decoded(after["words"]) for word in ("antediluvian", "prelapsarian")] == [False, True]
    assert page(again, "leaves.html")[1] == "Foliage"
    assert len(after["messages"]) == len(before["messages"]) and len(after["pages"]) == len(before["pages"]) - 1
    assert ">Foliage</a>" in text_of(again, "search.html") and ">叶子</a>" not in text_of(again, "search.html")
    for name in ("moved_list.html", "second_list.html"):
        assert [said for group in listed(again, name).values() for said in group] == [
            "grad can be implicitly created only for scalar outputs backward on a matrix"
        ]


def test_nothing_is_left_of_sphinxs_search(built: Build) -> None:
    assert not (built.out / "searchindex.js").exists()
    assert "sphinx_highlight" not in text_of(built, "leaves.html")


def test_without_javascript_a_box_leads_to_the_list(built: Build) -> None:
    box = text_of(built, "search.html")
    assert '<form class="search-here" role="search" action="' in box and 'name="q"' in box
    assert ">Leaves</a>" in box
