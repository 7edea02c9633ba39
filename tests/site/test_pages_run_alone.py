"""The script and the notebook of each Markdown page run in an empty folder, as they do for a reader who downloads them.

So what ``atlas.notebooks.own_needs`` finds in the code is all that the code needs of this site.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_scripts_run_alone import fault

from markup import read
from sources import ROOT

CPU = 120  # seconds: one of them compiles C++

#: Pages whose code reads what the build measured.
RUN_ONLY_HERE = {"reference/operators", "reference/formulas"}


def offering() -> list[str]:
    """The pages of the sources that show code, and say of none that it runs only here."""
    shown = [path for path in (ROOT / "docs").rglob("*.md") if "gallery" not in path.parts and _shows_code(path)]
    return sorted({path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in shown} - RUN_ONLY_HERE)


def _shows_code(path: Path) -> bool:
    blocks = path.read_text(encoding="utf-8").split("\n```{")[1:]
    return any(
        block.startswith(("code-cell}", "doctest}")) and ":hide:" not in block and "remove-cell" not in block
        for block in blocks
    )


def download(site: Path, page: str, suffix: str) -> Path:
    path = site / f"{page}.html"
    (link,) = (link for link in read(path).select(".sphx-glr-footer a[download]") if link["href"].endswith(suffix))
    return path.parent / link["href"]


def code_of(notebook: Path) -> str:
    """The code of a notebook but its first cell, which installs; a cell that is said to raise must."""
    made = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"][1:]:
        code = "".join(cell["source"])
        if cell["cell_type"] == "code" and "raises-exception" in cell["metadata"].get("tags", []):
            made.append(
                f"try:\n    exec({code!r}, globals())\nexcept Exception:\n    pass\nelse:\n    raise SystemExit({code!r})"
            )
        elif cell["cell_type"] == "code":
            made.append(code)
    return "\n".join(made)


@pytest.mark.parametrize("name", offering())
def test_the_script_runs_alone(site: Path, name: str, tmp_path: Path) -> None:
    assert fault(download(site, name, ".py"), tmp_path, real=True, cpu=CPU) is None


@pytest.mark.parametrize("name", offering())
def test_the_notebook_runs_alone(site: Path, name: str, tmp_path: Path) -> None:
    script, empty = tmp_path / "notebook.py", tmp_path / "empty"
    script.write_text(code_of(download(site, name, ".ipynb")), encoding="utf-8")
    empty.mkdir()
    assert fault(script, empty, real=True, cpu=CPU) is None


@pytest.mark.parametrize("name", sorted(RUN_ONLY_HERE))
def test_a_page_that_cannot_says_so(site: Path, name: str) -> None:
    page = read(site / f"{name}.html")
    assert (
        not page.select(".sphx-glr-footer") and "data/operators.json" in page.select_one(".runs-only-here").get_text()
    )


def test_the_pages_are_found() -> None:
    assert {"guide/which-switch", "guide/autograd-in-ten-minutes", "reference/shapes"} <= set(offering())
