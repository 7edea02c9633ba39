"""sphinx-gallery's internals are where the site expects them, and do what it expects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sphinx.errors import ExtensionError
from sphinx_gallery import py_source_parser
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

from atlas.cells import line_watcher
from atlas.runner import sphinx_gallery_api
from runner.faulty import HEALTHY


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "examples" / "graphs" / "page.py"
    path.parent.mkdir(parents=True)
    path.write_text(HEALTHY)
    yield path
    line_watcher.stop()  # a build ends the process; here it would slow all tests that follow


def test_a_page_is_made_where_it_is_asked_for(script: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    docs = tmp_path / "docs"
    sphinx_gallery_api.run(script, docs / "gallery" / "graphs", docs, settings, end=1)
    made = docs / "gallery" / "graphs"
    assert {"page.rst", "page.py", "page.ipynb", "page.zip"} <= {path.name for path in made.iterdir()}
    assert ".. _sphx_glr_gallery_graphs_page.py:" in (made / "page.rst").read_text()


def test_a_page_marked_current_is_not_run(script: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    docs = tmp_path / "docs"
    made = docs / "gallery" / "graphs"
    sphinx_gallery_api.run(script, made, docs, settings, end=1)
    before = (made / "page.rst").stat().st_mtime_ns
    assert not (made / "page.py.md5").exists(), "a page that was not run must not pass for one that was"
    sphinx_gallery_api.mark_current(made / "page.py")
    sphinx_gallery_api.run(script, made, docs, settings)
    assert (made / "page.rst").stat().st_mtime_ns == before


@pytest.mark.parametrize(("end", "printed"), [("# %%", []), ("# Later.", ["2."]), ("", ["2.", "4."])])
def test_code_from_a_line_on_is_shown_and_not_run(
    script: Path, tmp_path: Path, settings: dict[str, Any], end: str, printed: list[str]
) -> None:
    script.write_text(HEALTHY + "\n# %%\n# Later.\n\nprint(x * 2)\n")
    made = tmp_path / "docs" / "gallery" / "graphs"
    line = script.read_text().splitlines().index(end) + 1 if end else None
    sphinx_gallery_api.run(script, made, tmp_path / "docs", settings, end=line)
    text = (made / "page.rst").read_text()
    assert re.findall(r"(?<!torch\.)tensor\((\d\.)", text) == printed
    assert "    print(x * 2)" in text and (made / "page.py.md5").exists() == (not end)


@pytest.fixture
def docstrings_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has sphinx-gallery parse docstrings only, for the rest of a test."""
    monkeypatch.setattr(py_source_parser, "parse_source_file", py_source_parser.parse_source_file)
    return sphinx_gallery_api.parse_docstrings_only


def test_what_is_read_of_a_docstring_alone_is_the_same(
    docstrings_only: Callable[[], None], root: Path, all_scripts: list[str]
) -> None:
    scripts = [root / "examples" / name for name in all_scripts]
    whole = [split_code_and_text_blocks(script, return_node=True) for script in scripts]
    docstrings_only()
    alone = [split_code_and_text_blocks(script, return_node=True) for script in scripts]
    assert [found[:2] for found in whole] == [found[:2] for found in alone]
    assert {len(node.body) for _, _, node in alone} == {1} != {len(node.body) for _, _, node in whole}


NO_PAGES = ["", "x = 1\n", "x = '\n", '"""No end\n', 'import os\n"""Late"""\n', 'f"""{1}"""\n', 'x = 1 + "two"\n']


@pytest.mark.parametrize("code", NO_PAGES)
def test_a_script_without_a_docstring_is_refused_as_before(
    docstrings_only: Callable[[], None], script: Path, code: str
) -> None:
    script.write_text(code)

    def title() -> str:
        try:
            return split_code_and_text_blocks(script)[1][0].content
        except ExtensionError as error:
            return str(error)

    before = title()
    docstrings_only()
    assert title() == before


def test_code_has_no_links(script: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    script.write_text(HEALTHY + "import torch\ntorch.ones(2)\n")
    made = tmp_path / "docs" / "gallery" / "graphs"
    sphinx_gallery_api.run(script, made, tmp_path / "docs", settings)
    assert (made / "page.rst").exists()
    assert not list(made.glob("*.codeobj*"))


HARNESS = """
# %%
# This raises:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    if x > 1:
        x.sum(5)
# sphinx_gallery_start_ignore
except IndexError as error:
    print("IndexError: no such", "dimension")
# sphinx_gallery_end_ignore

# %%
# A class:


class Cell:
    y = x
"""


def test_code_that_raises_is_shown_without_its_harness(
    script: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    script.write_text(HEALTHY + HARNESS)
    made = tmp_path / "docs" / "gallery" / "graphs"
    sphinx_gallery_api.run(script, made, tmp_path / "docs", settings)
    page = (made / "page.rst").read_text()
    assert "\n    if x > 1:\n        x.sum(5)\n" in page and "try:" not in page and ":dedent:" not in page
    assert "IndexError: no such dimension" in page
    cells = json.loads((made / "page.ipynb").read_text())["cells"]
    tagged = {"".join(cell["source"]): cell["metadata"].get("tags") for cell in cells if cell["cell_type"] == "code"}
    assert tagged["if x > 1:\n    x.sum(5)"] == ["raises-exception"]
    assert tagged["class Cell:\n    y = x"] is None


def test_blocks_title_and_options(script: Path) -> None:
    script.write_text(HEALTHY + "# sphinx_gallery_time_limit = 7  # twice as long\n# sphinx_gallery_other = abc \n")
    assert sphinx_gallery_api.title(script) == "A page"
    assert [kind for kind, _, _ in sphinx_gallery_api.blocks(script)] == ["text", "code", "text", "code"]
    assert sphinx_gallery_api.option(script, "time_limit") == (HEALTHY.count("\n") + 1, 7)
    assert sphinx_gallery_api.option(script, "other") == (HEALTHY.count("\n") + 2, "abc")
    assert sphinx_gallery_api.option(script, "absent") is None
