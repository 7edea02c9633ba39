"""What authors write, on the pages of tiny sites: one that holds all of it, one with a fault on each page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

from atlas.versions import DATA
from tiny.tiny_site import Build, build, written

Page = Callable[[str], BeautifulSoup]

KINK = "kinks: x.abs() at x = [0]"
MEASURED = {
    "versions": {"2.13.0": {}, "2.14.1": {}, "2.15.0": {}},
    "kinks": {"x.abs() at x = [0]": {"2.13.0": "[0]", "2.14.1": "[1]"}},
}
CHANGED = f"""# Changed

```{{torch-changed}} 2.14
:probe: {KINK}

What you do about it.
```

```{{version-table}}
```
"""
QUOTED = "```{quoted-message} ADDRESS\nRuntimeError: CUDA error: no kernel image\nis available\n```\n"
EXAMPLE = '"""\nPage {}\n======\n\nText.\n"""\n\nx = 1\n{}\n'
FILES = {
    f"docs/{DATA}": json.dumps(MEASURED),
    "docs/about/how-this-site-stays-true.md": "# True\n\nText.\n",
    "docs/changed.md": CHANGED,
    "docs/proof.md": "# Proof\n\n```{proof}\n```\n",
    "docs/quoted.md": "# Quoted\n\n" + QUOTED.replace("ADDRESS", "https://example.org/threads/1"),
    "docs/square.md": "# The square $x^2$\n\n## Its derivative $2x$\n\n```{page-filter} terms\n```\n\nText.\n",
    "examples/graphs/one.py": EXAMPLE.format(1, "assert x\nassert x == 1"),
    "examples/graphs/two.py": EXAMPLE.format(2, "assert x"),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Build:
    done = build(written(tmp_path_factory.mktemp("site"), FILES))
    assert done.code == 0, done.output
    return done


def read(done: Build, name: str) -> BeautifulSoup:
    return BeautifulSoup((done.out / name).read_bytes(), "html.parser")


def text_of(node: object) -> str:
    return " ".join(node.get_text().split())


# -- Notes and boxes ------------------------------------------------------------------------------


def test_a_quoted_message_stands_in_one_piece_with_its_source(own: Build) -> None:
    page = read(own, "quoted.html")
    assert text_of(page.select_one(".quoted-message pre")) == "RuntimeError: CUDA error: no kernel image is available"
    assert page.select_one(".quoted-message-source a")["href"] == "https://example.org/threads/1"


def test_another_version_is_told_with_both_values(own: Build) -> None:
    page = read(own, "changed.html")
    (box,) = page.select(".torch-changed")
    assert text_of(box) == (
        "Changed in PyTorch 2.14. x.abs() at x = [0]: [0] on 2.13.0, [1] on 2.14.1. What you do about it."
    )
    assert [code.get_text() for code in box.select("code")] == ["x.abs() at x = [0]", "[0]", "[1]"]
    assert len(page.select(".long-table.versions tbody tr")) == 1
    twin = (own.out / "changed.html.md").read_text(encoding="utf-8")
    assert "**Changed in PyTorch 2.14.** `x.abs() at x = [0]`: `[0]` on 2.13.0, `[1]` on 2.14.1." in twin


def list_numbers(done: Build) -> dict[str, str]:
    """Each number of the proof by the page that it leads to."""
    return {link["href"]: link.get_text() for link in read(done, "proof.html").select("article .proof a")}


def test_the_proof_counts_and_follows_what_is_counted(own: Build) -> None:
    """And it is silent about what is not there."""
    said = json.loads((own.out / "build.json").read_text(encoding="utf-8"))
    assert said["checks"] == 3
    assert list_numbers(own) == {
        "about/how-this-site-stays-true.html": f"3 asserts check the text with PyTorch {said['torch'].rpartition('.')[0]}",
        "gallery/index.html": "2 pages, each a script that you can run",
    }
    (own.site / "examples/graphs/two.py").write_text(EXAMPLE.format(2, "assert x\n" * 40), encoding="utf-8")
    assert build(own.site).code == 0
    assert list_numbers(own)["about/how-this-site-stays-true.html"].startswith("42 asserts")


# -- Faults, each with its file and line ----------------------------------------------------------

UNCHANGED = f"'{KINK}' was not measured to change in 2.15: '[0]' on 2.13.0, '[1]' on 2.14.1, '[1]' on 2.15.0"
BESIDE = "this question stands beside its answer: put its cell below '.. solution::'"
#: Each in the third line of a page.
FAULTS = {
    "quoted": (QUOTED.replace("ADDRESS", "a thread somewhere"), "say where the message was seen"),
    "unnamed": ("```{torch-changed} 2.14\nText.\n```\n", "name what was measured: ':probe: kinks:"),
    "unknown": ("```{torch-changed} 2.14\n:probe: kinks: x.no()\n```\n", "no probe 'kinks: x.no()'"),
    "unchanged": (f"```{{torch-changed}} 2.15\n:probe: {KINK}\n```\n", UNCHANGED),
    "markup": (":::{how-measured} It fills ``.grad``.\n:::\n", "leave out the markup"),
    "open": ('```{predict} What is it?\n:answer: ["4"]\n```\n', BESIDE),
    "filter": ("```{page-filter} pages\n```\n", "there is no filter of 'pages': choose from symptoms, terms"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Build:
    pages = {f"docs/{name}.md": f"# Page {name}\n\n{text}" for name, (text, _says) in FAULTS.items()}
    done = build(written(tmp_path_factory.mktemp("broken"), {f"docs/{DATA}": json.dumps(MEASURED), **pages}))
    assert done.code != 0
    return done


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_file_and_line(broken: Build, name: str) -> None:
    _text, says = FAULTS[name]
    assert re.search(rf"docs/{name}\.md:3: .*{re.escape(says)}", broken.output), broken.about(f"{name}.md")


# -- Folds and questions --------------------------------------------------------------------------


def test_a_fold_holds_what_belongs_to_it_up_to_the_end_of_its_section(page: Page) -> None:
    whole = page("exercise")
    (fold,) = whole.select("details.solution")
    assert not fold.has_attr("open") and fold.summary.get_text() == "Solution"
    text = fold.get_text()
    for part in ("The text of the solution.", "answer = 2 + 2", "The answer is 4", "the last output of the solution"):
        assert part in text
    assert fold.select(".sphx-glr-script-out") and fold.select("math")
    assert "Answer the question." not in text and "Not a part of the solution." not in text
    assert not whole.select_one("#what-comes-next").find_parent("details")


def test_a_question_is_hidden_until_its_script_runs(page: Page) -> None:
    whole = page("exercise")
    (form,) = whole.select("form.predict")
    assert form.has_attr("hidden") and not form.find_parent("details")
    assert json.loads(form.select_one("script").string)["answer"] == ["4"]
    assert form.label.get_text(strip=True) == "What is 2 + 2?"
    assert form.find_next("details") is whole.select_one("details.solution")
    assert "predict" not in whole.select_one("article pre").get_text()
    scripts = [script.get("src", "") for script in whole.select("script")]
    assert any("predict.js" in source for source in scripts)
    assert not any("predict.js" in script.get("src", "") for script in page("one_assert").select("script"))


# -- Formulas -------------------------------------------------------------------------------------


def list_tex(page: BeautifulSoup, selector: str) -> list[str]:
    return [math.annotation.get_text().strip() for math in page.select(f"{selector} math")]


def test_formulas_of_markdown_and_of_examples_are_mathml(page: Page) -> None:
    guide = page("guide")
    assert list_tex(guide, "#formulas p") == ["f'(x) = 2x"]
    assert list_tex(guide, "#formulas div.math")[0] == "f(x) = x^2"
    assert list_tex(page("graph_of_a_product"), "article") == ["y = w x", r"\frac{\partial y}{\partial w} = x"]
    (last,) = guide.select("#formulas div.math")[1:]
    assert [len(table.find_all("mtr")) for table in last.find_all("mtable")] == [2, 2]


def test_only_a_page_with_formulas_asks_for_their_font(page: Page) -> None:
    font = 'link[rel="preload"][href="{}_static/fonts/atlas-math.woff2"][crossorigin]'
    assert page("guide").select(font.format(""))
    assert page("graph_of_a_product").select(font.format("../../"))
    assert not page("no_assert").select('link[rel="preload"]')


def test_a_formula_of_a_title_is_in_the_links_made_of_it(own: Build) -> None:
    """Sphinx copies titles into the side bar and the table of contents."""
    square, index = read(own, "square.html"), read(own, "index.html")
    assert list_tex(square, "h1") == list_tex(index, ".sidebar-tree") == ["x^2"]
    assert list_tex(square, "h2") == ["2x"]
    (form,) = square.select("form.page-filter")
    assert form["data-items"] == "dl.glossary > dt" and form["data-count"] == "{shown} of {all} terms"
