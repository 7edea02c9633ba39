"""The pages as Markdown: each by itself, in one list, and all in one file."""

from __future__ import annotations

from atlas.markdown_copies import convert_page
from tiny.tiny_site import Build


def test_what_is_for_the_eye_is_left_out() -> None:
    page = (
        '<article><svg role="img" aria-label="A &amp; B"><text>no</text></svg>'
        '<div class="graph-bar"><button>no</button></div><script type="application/json">{"no": 1}</script>'
        '<div class="highlight-Python notranslate"><div class="highlight"><pre><span>x = 1</span></pre></div></div></article>'
    )
    assert convert_page(page).split("\n\n") == ["*Figure: A & B*", "``` python\nx = 1\n```\n"]


def test_pages_are_listed_by_chapter_with_a_sentence_each(hosted: Build) -> None:
    lines = (hosted.out / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Autograd Atlas"
    assert "- [Words](https://owner.example/fork/words.html.md): The words, each in a sentence. See leaf." in lines
    assert "## Examples" in lines and "- [Bare](https://owner.example/fork/bare.html.md)" in lines
