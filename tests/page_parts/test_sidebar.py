"""The sidebar of a page is the theme's own, less the pages of other chapters: it does not grow with the site."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from markup import read
from sources import ROOT
from tiny.tiny_site import Build, build, written


def chapter(title: str, *pages: str) -> str:
    return "\n".join([f"# {title}", "", "```{toctree}", *pages, "```", ""])


FRONT = (
    "# Front\n\n```{toctree}\n:caption: Guide\nguide\n```\n\n"
    "```{toctree}\n:caption: Chapters\na/index\nb/index\ngallery/index\n```\n"
)
SITE = {
    "docs/index.md": FRONT,
    "docs/guide.md": "# A `guide`\n\nText.\n",
    "docs/a/index.md": chapter("Chapter A", "one", "/shared"),
    "docs/a/one.md": "# One\n\n## A section\n\nText.\n",
    "docs/shared.md": "# In both\n\nText.\n",
    "docs/b/index.md": chapter("Chapter B", "/shared", "three"),
    "docs/b/three.md": chapter("Three", "deep"),
    "docs/b/deep.md": "# Deep\n\nText.\n",
}
PAGES = ["index", "guide", "a/index", "a/one", "b/index", "b/three", "b/deep", "gallery/index", "404"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Build:
    done = build(written(tmp_path_factory.mktemp("ours"), SITE))
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="module")
def furos(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The same site with the sidebar that furo makes when it is left alone."""
    conf = shutil.copytree(ROOT / "conf", tmp_path_factory.mktemp("conf") / "conf")
    rooms = conf / "atlas" / "page_parts" / "__init__.py"
    text = rooms.read_text(encoding="utf-8")
    assert '    "sidebar",\n' in text
    rooms.write_text(text.replace('    "sidebar",\n', ""), encoding="utf-8")
    done = build(written(tmp_path_factory.mktemp("furos"), SITE), conf=conf)
    assert done.code == 0, done.output
    return done


def sidebar(built: Build, page: str) -> Tag:
    """The tree of a page; read anew, as a test may change it."""
    text = (built.out / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").select_one(".sidebar-tree")


def without_other_branches(tree: Tag) -> Tag:
    """Close what is not above the page: the list goes, and furo's switch for it."""
    for item in tree.select("li.has-children:not(.current)"):
        if not item.decomposed:  # with the branch around it
            item["class"].remove("has-children")
            for part in item.find_all(["ul", "input", "label"], recursive=False):
                part.decompose()
    return tree


def told(tree: Tag) -> str:
    """All that is in the tree but the switches' numbers, which count the switches of the page."""
    for switch in tree.select("input, label"):
        for attribute in ("id", "name", "for"):
            if switch.has_attr(attribute):
                switch[attribute] = "n"
    return str(tree).replace("\n", "")


@pytest.mark.parametrize("page", PAGES)
def test_it_is_what_the_theme_makes_less_other_branches(ours: Build, furos: Build, page: str) -> None:
    """To the letter: addresses, classes, names of switches, which of them are open, captions."""
    assert told(sidebar(ours, page)) == told(without_other_branches(sidebar(furos, page)))


def names(tree: Tag) -> list[str]:
    return [link.get_text() for link in tree.select("a")]


TOP = ["A guide", "Chapter A", "Chapter B", "Examples"]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("index", TOP),
        ("guide", TOP),
        ("404", TOP),
        ("a/one", ["A guide", "Chapter A", "One", "In both", "Chapter B", "Examples"]),
        ("b/index", ["A guide", "Chapter A", "Chapter B", "In both", "Three", "Examples"]),
        ("b/deep", ["A guide", "Chapter A", "Chapter B", "In both", "Three", "Deep", "Examples"]),
        ("shared", ["A guide", "Chapter A", "Chapter B", "In both", "Three", "Examples"]),
    ],
)
def test_it_names_the_pages_of_its_own_chapter(ours: Build, page: str, shown: list[str]) -> None:
    """A page that two chapters name opens one of them: the last by the names of their files."""
    assert names(sidebar(ours, page)) == shown


@pytest.mark.parametrize("page", ["a/one", "b/deep", "shared"])
def test_the_page_is_marked_and_the_branches_above_it_are_open(ours: Build, page: str) -> None:
    tree = sidebar(ours, page)
    (current,) = tree.select("li.current-page")
    assert current.a["href"] == "#"
    above = [item for item in current.parents if item.name == "li"]
    assert above and all("current" in item["class"] and item.input.has_attr("checked") for item in above)
    assert "current" in current.find_parents("ul")[-1]["class"]


def test_a_caption_has_a_level(ours: Build) -> None:
    """furo gives it the role of a heading, which needs one: ``conf/templates/page.html`` adds it."""
    captions = sidebar(ours, "a/one").select("[role=heading]")
    assert [(caption.get_text(), caption.get("aria-level")) for caption in captions] == [
        ("Guide", "2"),
        ("Chapters", "2"),
    ]


@pytest.mark.parametrize("name", ["index.html", "gallery/memory/checkpointing.html", "search.html"])
def test_every_link_of_the_real_site_leads_to_a_page(site: Path, name: str) -> None:
    links = [link["href"] for link in read(site / name).select(".sidebar-tree a")]
    assert [link for link in links if link != "#"]
    assert not [link for link in links if link != "#" and not (site / name).parent.joinpath(link).is_file()]


def test_a_chapter_of_the_real_site_lists_all_its_pages_and_no_others(site: Path, all_pages: list[str]) -> None:
    tree = read(site / "gallery/memory/index.html").select_one(".sidebar-tree")
    own = {f"gallery/memory/{link['href']}" for link in tree.select("li.toctree-l2 > a")}
    assert own == {page for page in all_pages if page.startswith("gallery/memory/")} - {"gallery/memory/index.html"}
