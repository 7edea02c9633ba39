"""At the end of a page stand its tags, the list has all pages, and only what has changed is written again."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, Snapshot, build, written

PAGE = '''"""
Page {name}
{line}

About {name}.
"""

import torch

x = torch.ones(2)
print(1)
assert x.any()
'''
NAMES = ("a/one", "a/two", "a/three", "b/four", "b/five", "b/six", "b/seven", "c/eight", "c/nine")
TAGS = """tags = ["hooks", "sums", "GPU kernels"]

[chapters.a]
one = ["hooks"]
two = ["hooks"]
three = ["hooks", "GPU kernels"]

[chapters.b]
four = ["hooks"]
five = ["sums"]
six = ["sums"]
seven = ["sums"]

[chapters.c]
eight = ["sums"]
nine = ["sums"]
"""


def links(out: Path, page: str, label: str) -> dict[str, str]:
    """The links of one of a page's lines: their words, and where they lead."""
    soup = BeautifulSoup((out / f"gallery/{page}.html").read_text(encoding="utf-8"), "html.parser")
    lines = [line for line in soup.select("p.leads-on") if line.get_text().startswith(label)]
    return {link.get_text(): link["href"] for line in lines for link in line.select("a")}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    pages = {f"examples/{name}.py": PAGE.format(name=name.rpartition("/")[2], line="=" * 20) for name in NAMES}
    header = "Examples\n========\n\nText.\n\n.. tagged-pages::\n"
    files = {**pages, "examples/GALLERY_HEADER.rst": header, "examples/pages.toml": TAGS}
    site = written(tmp_path_factory.mktemp("site"), files)
    done = build(site)
    assert done.code == 0, done.output
    return done, Snapshot.of(site)


def test_a_page_shows_its_tags_as_links_to_the_list(built: Build) -> None:
    assert links(built.out, "a/three", "Tags:") == {
        "hooks": "../index.html?tag=hooks",
        "GPU kernels": "../index.html?tag=GPU%20kernels",
    }


def test_the_list_has_all_pages_once_with_their_tags(built: Build) -> None:
    soup = BeautifulSoup((built.out / "gallery/index.html").read_text(encoding="utf-8"), "html.parser")
    items = soup.select(".tagged li")
    tags = {item.a.get_text(): item.select_one("p + p").get_text() for item in items}
    assert tags["Page three"] == "hooks · GPU kernels"
    assert len(items) == len(NAMES) and not soup.select("article .sphx-glr-thumbcontainer")
    chapters = {link["href"] for link in soup.select(".tagged .chapter > p a")}
    assert chapters == {"a/index.html", "b/index.html", "c/index.html"}


def rewritten(built: Build) -> set[str]:
    """Build again, and return the pages that were written."""
    before = built.times()
    again = build(built.site)
    assert again.code == 0, again.output
    return {page for page, time in again.times().items() if before.get(page) != time}


def test_a_tag_that_changed_writes_the_pages_that_show_it(built: Build) -> None:
    file = built.site / "examples/pages.toml"
    file.write_text(TAGS.replace('six = ["sums"]', 'six = ["sums", "hooks"]'))
    in_toctrees_of = {"gallery/b/index.html", "index.html"}  # Sphinx writes those too
    assert rewritten(built) == {"gallery/b/six.html", "gallery/index.html"} | in_toctrees_of
