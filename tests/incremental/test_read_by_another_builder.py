"""What another builder reads first reaches the pages all the same: a figure of an example, and the site's own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny.broken import HEAD
from tiny.tiny_site import ROOT, Build, build, copy_of, written

EXAMPLE = f"{HEAD}x = torch.tensor(2.0, requires_grad=True)\ny = x.sin()\n\n# graph: y -- One node\n"
SHOWS = "# Shows\n\n```{graph-figure} /gallery/basics/images/sphx_glr_example_001.graph.json\n:title: One node\n```\n"
WORDS = "The graph as a table"


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the site's settings and code, to be changed."""
    return copy_of(ROOT / "conf", tmp_path_factory.mktemp("code") / "conf")


@pytest.fixture(scope="module")
def first(conf: Path, tmp_path_factory: pytest.TempPathFactory) -> Build:
    files = {"examples/basics/example.py": EXAMPLE, "docs/shows.md": SHOWS, "docs/other.md": "# Other\n\nText.\n"}
    done = build(written(tmp_path_factory.mktemp("site"), files), conf=conf)
    assert done.code == 0, done.output
    return done


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def build_again(first: Build, conf: Path, *builders: str) -> None:
    for builder in builders:
        done = build(first.site, builder, conf=conf)
        assert done.code == 0, done.output


def test_an_example_s_figure_on_another_page(first: Build, conf: Path) -> None:
    shows, before = first.out / "shows.html", first.times()
    assert "SinBackward0" in shows.read_text(encoding="utf-8")
    edit(first.site / "examples" / "basics" / "example.py", "sin()", "cos()")
    build_again(first, conf, "doctest", "html")
    assert "CosBackward0" in shows.read_text(encoding="utf-8")
    assert first.times()["other.html"] == before["other.html"]


@pytest.mark.parametrize("builders", ["html", "doctest html"])
def test_a_sentence_of_the_site_s_own_code(first: Build, conf: Path, builders: str) -> None:
    page = first.out / "gallery" / "basics" / "example.html"
    words = f"{WORDS}, by {builders}"
    assert words not in page.read_text(encoding="utf-8")
    edit(conf / "atlas" / "directives" / "figures" / "graph_figure.py", WORDS, words)
    build_again(first, conf, *builders.split())
    assert words in page.read_text(encoding="utf-8")
