"""Each page can be had as Markdown, with what it prints, and ``llms.txt`` leads to all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from markup import read
from sources import GENERATED

LINK = re.compile(r"^- \[.+\]\((https?://[^)]+)\)(?:: .+)?$")


@pytest.fixture
def twin(site: Path, page: str) -> Path:
    if page in GENERATED:
        pytest.skip("made by Sphinx, not from a source")
    return site / f"{page}.md"


def test_a_page_says_where_its_twin_is(site: Path, page: str, twin: Path) -> None:
    (link,) = read(site / page).select("link[type='text/markdown']")
    assert (site / page).parent / link["href"] == twin


def test_a_twin_is_the_page_in_markdown(site: Path, page: str, twin: Path) -> None:
    text = twin.read_text(encoding="utf-8")
    title = read(site / page).select_one("article h1").find(string=True).replace("`", "")
    assert re.search(rf"^# .*{re.escape(title.strip()[:20])}", text.replace("\\", "").replace("`", ""), re.MULTILINE)
    code = re.sub(r"^```.*?^```$|^    .*$|`+.+?`+", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"</?(?:div|span|svg|p|a|button|script)\b", code)


def test_a_twin_has_its_tables_and_no_pictures_in_letters(twin: Path) -> None:
    text = twin.read_text(encoding="utf-8")
    assert "[TABLE]" not in text, "a cell of a table holds a block, such as a list or a div"
    assert "data:image" not in text


def test_a_twin_has_the_outputs(site: Path) -> None:
    text = (site / "gallery/graphs/first_graph.html.md").read_text(encoding="utf-8")
    assert "``` python\nimport math\n\nimport torch" in text
    assert "dw/dx2 = -1.7267885" in text
    assert "*Figure: The graph that these four lines recorded" in text
    assert "\\frac{\\partial w}{\\partial x_2}" in text


def test_llms_txt_lists_every_page_once(site: Path) -> None:
    lines = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Autograd Atlas" and lines[2].startswith("> ")
    found = [match[1] for line in lines if (match := LINK.match(line))]
    twins = {path.relative_to(site).as_posix() for path in site.rglob("*.html.md")}
    base = next(
        link[: -len("gallery/graphs/index.html.md")] for link in found if link.endswith("graphs/index.html.md")
    )
    assert len(found) == len(set(found))
    lists = {"index.html.md", "gallery/index.html.md", "search.html.md"}  # of the very pages that llms.txt lists
    assert {link.removeprefix(base) for link in found} == twins - lists
    order = [found.index(f"{base}gallery/{page}.html.md") for page in ("graphs/first_graph", "cuda/devices")]
    assert order == sorted(order)
