"""What keeps a page light: the scripts that it uses, without comments; a sidebar that does not grow with the site."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from atlas.page_weight import join_sheets, shrink_scripts
from atlas.toolbox import Refusal
from tiny.tiny_site import Build, build, written

SCRIPT = """\
// A comment
const words = `two  spaces // here\\n`;   /* another */
if (words.match(/a  \\/\\/ b/)) {
  alert("c  // d");
}
"""

# -- The style sheet ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "sheets"), [("text", ["site.css"]), ("guide/which", ["site.css", "math.css"])])
def test_a_page_links_one_sheet_and_that_of_formulas_if_it_has_any(
    hosted: Build, name: str, sheets: list[str]
) -> None:
    page = BeautifulSoup((hosted.out / f"{name}.html").read_bytes(), "html.parser")
    addresses = [link["href"] for link in page.select("link[rel=stylesheet]")]
    assert [Path(address.partition("?v=")[0]).name for address in addresses] == sheets


def test_rules_stand_in_the_order_of_the_sheets_without_those_that_no_page_can_match() -> None:
    sheets = {
        "_static/a.css": "/* why */ a { color: red }\n.sd-tab-set > label { top: 0 } .sd-card { top: 0 }",
        "_static/b.css": "a { color: #00f }\n.sd-card:not(.sd-tab-set) { content: '  x  ' }",
    }
    assert join_sheets(sheets) == (
        'a{color:red}.sd-card{top:0}\na{color:#00f}.sd-card:not(.sd-tab-set){content:"  x  "}\n'
    )


def test_a_sheet_that_cannot_be_read_is_named() -> None:
    with pytest.raises(Refusal, match=r"_static/1\.css:2"):
        join_sheets({"_static/1.css": "p { top: 0 }\nq { top: 0 }\n}"})


# -- Scripts --------------------------------------------------------------------------------------


def test_a_page_loads_the_scripts_that_it_uses(hosted: Build) -> None:
    plain, coded = ((hosted.out / f"{name}.html").read_text(encoding="utf-8") for name in ("text", "bare"))
    scripts = ("furo.js", "search_box.js", "copybutton.js", "predict.js")
    assert [script in plain for script in scripts] == [True, True, False, False]
    assert "copybutton.js" in coded


def test_scripts_go_out_small_and_do_the_same(tmp_path: Path) -> None:
    for folder in ("static", "out"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.js").write_text(SCRIPT)
    shrink_scripts(tmp_path / "static", tmp_path / "out")
    small = tmp_path / "out" / "a.js"
    first = small.stat().st_mtime_ns
    assert small.read_text(encoding="utf-8") == (
        'const words=`two  spaces // here\\n`;if(words.match(/a  \\/\\/ b/)){alert("c  // d");}\n'
    )
    shrink_scripts(tmp_path / "static", tmp_path / "out")
    assert (tmp_path / "static" / "a.js").read_text(encoding="utf-8") == SCRIPT and small.stat().st_mtime_ns == first


# -- The sidebar ----------------------------------------------------------------------------------


def chapter(title: str, *pages: str) -> str:
    return "\n".join([f"# {title}", "", "```{toctree}", *pages, "```", ""])


FRONT = (
    "# Front\n\n```{toctree}\n:caption: Guide\nguide\n```\n\n"
    "```{toctree}\n:caption: Chapters\na/index\nb/index\ngallery/index\n```\n"
)
CHAPTERS = {
    "docs/index.md": FRONT,
    "docs/guide.md": "# A `guide`\n\nText.\n",
    "docs/a/index.md": chapter("Chapter A", "one", "/shared"),
    "docs/a/one.md": "# One\n\n## A section\n\nText.\n",
    "docs/shared.md": "# In both\n\nText.\n",
    "docs/b/index.md": chapter("Chapter B", "/shared", "three"),
    "docs/b/three.md": chapter("Three", "deep"),
    "docs/b/deep.md": "# Deep\n\nText.\n",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Build:
    done = build(written(tmp_path_factory.mktemp("ours"), CHAPTERS))
    assert done.code == 0, done.output
    return done


def sidebar(built: Build, page: str) -> Tag:
    """The tree of a page; read anew, as a test may change it."""
    text = (built.out / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").select_one(".sidebar-tree")


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("index", ["A guide", "Chapter A", "Chapter B", "Examples"]),
        ("a/one", ["A guide", "Chapter A", "One", "In both", "Chapter B", "Examples"]),
        ("b/deep", ["A guide", "Chapter A", "Chapter B", "In both", "Three", "Deep", "Examples"]),
    ],
)
def test_it_names_the_pages_of_its_own_chapter(ours: Build, page: str, shown: list[str]) -> None:
    tree = sidebar(ours, page)
    assert [link.get_text() for link in tree.select("a")] == shown
    assert [link["href"] for link in tree.select("a.current")] == (["#"] if page != "index" else [])
    assert all(item.select_one("ul") and item.select_one("label") for item in tree.select("li.has-children"))


def test_bars_and_captions_have_what_a_screen_reader_needs(hosted: Build, ours: Build) -> None:
    """``conf/templates/page.html`` adds it to furo's HTML: a name of each bar, the level of a heading."""
    page = BeautifulSoup((hosted.out / "text.html").read_bytes(), "html.parser")
    bars = [page.select_one(f"aside.{bar}")["aria-label"] for bar in ("sidebar-drawer", "toc-drawer")]
    assert bars == ["Pages of this site", "On this page"]
    captions = sidebar(ours, "a/one").select("[role=heading]")
    said = [(caption.get_text(), caption.get("aria-level")) for caption in captions]
    assert said == [("Guide", "2"), ("Chapters", "2")]
