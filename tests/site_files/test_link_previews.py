"""What a build writes into ``link-previews.js``: of each page its description, of each term the beginning of its definition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas.site_files.link_previews import FILE
from tiny.tiny_site import build, written

BEGINS = "window.atlasLinkPreviews="
GLOSSARY = r"""# Words

```{in-short}
The words, each in a sentence.
```

```{glossary}
leaf
  *叶子*

  A tensor without a {term}`node`. It is `x`.

  Another paragraph.

node
edge
  The product $v^\top J$ is computed here. This sentence is so long that no note has room for it beside the first, which is why
  it goes on and on, and names nothing that a reader could want to know, but that it is long, longer, and even longer than that.
```
"""


@pytest.fixture(scope="module")
def previews(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder: Path = tmp_path_factory.mktemp("previews")
    done = build(written(folder, {"docs/words.md": GLOSSARY, "docs/bare.md": "# Bare\n\n```\ncode\n```\n"}))
    assert done.code == 0, done.output
    text = (done.out / FILE).read_text(encoding="utf-8")
    assert text.startswith(BEGINS)
    return json.loads(text.removeprefix(BEGINS))


def test_a_page_is_told_by_the_box_at_its_top(previews: dict[str, list[str]]) -> None:
    assert previews["words.html"] == ["Words", "The words, each in a sentence."]


def test_a_page_without_a_sentence_has_no_preview(previews: dict[str, list[str]]) -> None:
    assert "bare.html" not in previews


def test_a_term_has_its_translation_and_its_first_sentences(previews: dict[str, list[str]]) -> None:
    assert previews["words.html#term-leaf"] == ["leaf 叶子", "A tensor without a node. It is x."]


def test_terms_of_one_definition_share_it_and_a_formula_is_readable(previews: dict[str, list[str]]) -> None:
    assert previews["words.html#term-node"] == ["node", "The product v⊤J is computed here."]
    assert previews["words.html#term-edge"] == ["edge", "The product v⊤J is computed here."]
