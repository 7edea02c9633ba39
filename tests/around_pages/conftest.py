"""One small site, built twice: as a host builds it, who says where it and its sources are, and without a word of that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, build, written

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SITE = "https://owner.example/fork/"
SOURCES = "https://github.com/someone/atlas"
EXAMPLE = '"""\nA page\n======\n\nText.\n"""\nimport torch\n\nx = torch.ones(2)\nassert x.sum() == 2\n'
NOTES = """# Release notes

What changed: {site-file}`llms.txt`.

## 2026-12-24: a second <edition> & more

- [Text](../text.md#a-part), [elsewhere](https://other.example/a?b=1&c=2), {site-file}`llms.txt`, `"x" < y`

### Mended

- One sentence, [here](#mended).

## 2026-11-23: The first

It begins.
"""
WORDS = r"""# Words

```{in-short}
The words, each in a sentence. See {term}`leaf`.
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
GUIDE = "# The *which* page\n\n## A part\n\nA formula, $x$.\n\n```python\ntorch.zeros(2)\n```\n\nThat is `zeros`.\n"
FILES = {
    "docs/guide/which.md": GUIDE,
    "docs/about/release-notes.md": NOTES,
    "docs/about/how-this-site-stays-true.md": "# How\n\nText.\n\n## What a sentence is about\n\nText.\n",
    "docs/about/take.md": "# Take along\n\nText.\n\n- {site-file}`autograd-atlas-site.zip`\n- {site-file}`llms.txt`\n",
    "docs/text.md": "# Text\n\nText.\n\n## A part\n\nText.\n",
    "docs/search.md": "# Search\n\nText.\n",  # to which each page leads
    "docs/words.md": WORDS,
    "docs/gap.md": "# Gap\n\n```{container} not-recorded\nText.\n```\n",  # as the runner marks a page that no recording fits
    "docs/bare.md": "# Bare\n\n```\ncode\n```\n",
    "docs/moved-pages.txt": "# Why: a better name\nold.html guide/which.html\nlong/gone.html guide/which.html#a-part\n",
    "docs/published-pages.txt": "old.html\ntext.html\n",
    "examples/graphs/one.py": EXAMPLE,
    "examples/basics/two.py": EXAMPLE.replace("Text.", "Text on ``mean``.") + "assert x.mean() == 1\n",
}

#: The page of this name.
Page = Callable[[str], BeautifulSoup]


def build_site(tmp_path_factory: pytest.TempPathFactory, name: str, **settings: str) -> Build:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SOURCE_DATE_EPOCH", raising=False)
        for setting, value in settings.items():
            patch.setenv(setting, value)
        done = build(written(tmp_path_factory.mktemp(name), FILES))
    assert done.code == 0, done.output
    return done


@pytest.fixture(scope="session")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Build:
    settings = {"ATLAS_SITE": SITE, "ATLAS_COMMIT": COMMIT, "ATLAS_REPOSITORY": SOURCES}
    return build_site(tmp_path_factory, "hosted", SOURCE_DATE_EPOCH="1790000000", **settings)


@pytest.fixture(scope="session")
def unhosted(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build_site(tmp_path_factory, "unhosted")


def make_reader(done: Build) -> Page:
    return cache(lambda name: BeautifulSoup((done.out / f"{name}.html").read_bytes(), "html.parser"))


@pytest.fixture(scope="session")
def hosted_page(hosted: Build) -> Page:
    return make_reader(hosted)


@pytest.fixture(scope="session")
def unhosted_page(unhosted: Build) -> Page:
    return make_reader(unhosted)
