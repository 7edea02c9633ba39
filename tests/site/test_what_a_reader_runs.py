"""What a reader sees of a page, runs: the notebook, cell by cell in a kernel, has the page's code and none that is hidden.

A cell that has to raise does, and no other. What a run prints stands on the page. The first block of a page about an error
stands alone: it is the kernel's first cell, and it says the message of the title. What needs a GPU says so in its first line,
and is counted apart.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import notebook_kernel
import warm_python
from atlas.gallery.requests import without_requests
from markup import read, read_notebook
from notebook_kernel import read_cells

SECONDS = 600  # on the clock, on a machine with other work


def test_the_notebook_runs(
    site: Path, root: Path, script: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    source, page = root / "examples" / script, site / "gallery" / Path(script).with_suffix(".html")
    shown = read(page)
    notebook = read_notebook(site, script)
    _, *code = ["".join(cell["source"]) for cell in notebook if cell["cell_type"] == "code"]
    cells = read_cells(source)
    assert code == [cell.code for cell in cells], "the notebook has other code than the page"
    assert {line for cell in cells for line in without_requests(cell.code).splitlines() if line.strip()} == {
        line
        for cell in shown.select("div.highlight-Python pre")
        for line in cell.get_text().splitlines()
        if line.strip()
    }
    tagged = {"".join(cell["source"]) for cell in notebook if "raises-exception" in cell["metadata"].get("tags", ())}
    assert tagged == {cell.code for cell in cells if cell.raises}
    done = warm_python.run_python(
        ["-P", notebook_kernel.__file__, f"{source}={page}"], cwd=tmp_path, env=os.environ, wall=SECONDS
    )
    assert not done.code, done.output
    record_property("notebooks ran in a kernel, which is the code that a reader sees", 1)
    if script.startswith("errors/"):
        needs = ", except that it needs a GPU" if cells[0].needs_gpu else ""
        record_property(f"first blocks of error pages say the message of the title{needs}", 1)


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("import torch\ntorch.ones(2).item(1, 2, 3)", "", "page.py:5: this cell raises TypeError"),
        ("raise ValueError('Wrong: 7')", "", None),
        ("raise ValueError('Right')", "", "the first block says 'ValueError: Right' and not 'Wrong'"),
        ("# This needs a GPU.\nraise ValueError('Right')", "", None),
        ("raise ValueError('Wrong')", "x = 1\nx.y", "this cell raises AttributeError"),
        (
            "raise ValueError('Wrong')",
            "HIDDEN",
            "page.py:20: this visible code uses 'late', which only hidden code defines",
        ),
        ("'Wrong'", "", "this cell raises nothing"),
    ],
)
def test_a_page_that_does_not_run_is_found(tmp_path: Path, first: str, second: str, says: str | None) -> None:
    script = tmp_path / "errors" / "page.py"
    script.parent.mkdir()
    start, end = "# sphinx_gallery_start_ignore\n", "# sphinx_gallery_end_ignore\n"
    shown = first.replace("\n", "\n    ")
    harness = (
        f"{start}try:\n    {end}    {shown}\n{start}except Exception: pass\n{end}" if "torch" not in first else first
    )
    after = f"{start}late = 1\n{end}print(late)" if second == "HIDDEN" else second
    script.write_text(f'"""\nWrong\n=====\n"""\n{harness}\n\n# %%\n# Text.\n\n{after}\n')
    found = notebook_kernel.find_faults(script)
    assert any(says in fault for fault in found) if says else not found, found
