"""Code that changes takes its page's names along: on the page and in the index, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build, build, written

INDEX = "# Names\n\nAll of them.\n\n```{names-used}\n```\n"


def page(title: str, code: str) -> str:
    literals = ", ".join(f"`{line}`" for line in code.splitlines())
    return f"# {title}\n\nOf {literals}.\n\n```python\n{code}\n```\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    files = {
        "docs/reference/names.md": INDEX,
        "docs/one.md": page("One", "torch.exp(x)"),
        "docs/two.md": page("Two", "torch.cos(x)"),
        "docs/three.md": page("Three", "torch.sin(x)"),
        "docs/four.md": page("Four", "torch.sin(x)"),
        "docs/text.md": "# Text\n\nNo code, `torch.exp`.\n",
    }
    done = build(written(tmp_path_factory.mktemp("names"), files))
    assert done.code == 0, done.output
    return done


def entries(built: Build) -> dict[str, list[str]]:
    index = BeautifulSoup((built.out / "reference/names.html").read_text(encoding="utf-8"), "html.parser")
    terms = index.select("dl.names-used > dt")
    pages = (term.find_next_sibling("dd").select("a") for term in terms)
    names = [term.get_text().rstrip("¶") for term in terms]
    return dict(zip(names, [[a.get_text() for a in links] for links in pages], strict=True))


def rewritten(before: dict[str, int], built: Build) -> set[str]:
    return {name for name, time in built.times().items() if before.get(name) != time}


def test_names_follow_the_code(built: Build) -> None:
    assert entries(built) == {"torch.cos": ["Two"], "torch.exp": ["One"], "torch.sin": ["Three", "Four"]}

    before = built.times()
    again = build(built.site)
    assert again.code == 0 and not rewritten(before, again), again.output

    (built.site / "docs/two.md").write_text(page("Two", "torch.sin(x)"), encoding="utf-8")
    build(built.site, "doctest")  # it reads the change first, and writes no page
    again = build(built.site)
    assert again.code == 0, again.output
    changed = {"two.html", "reference/names.html"}
    assert rewritten(before, again) - {"index.html"} == changed  # Sphinx writes the page above a changed one too
    assert entries(again) == {"torch.exp": ["One"], "torch.sin": ["Two", "Three", "Four"]}

    # a page that goes takes its names along
    (built.site / "docs/one.md").unlink()
    index = Path(built.site / "docs/index.md")
    index.write_text(index.read_text(encoding="utf-8").replace("\none\n", "\n"), encoding="utf-8")
    again = build(built.site)
    assert again.code == 0, again.output
    assert entries(again) == {"torch.sin": ["Two", "Three", "Four"]}
