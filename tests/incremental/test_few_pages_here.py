"""A few pages are read by the build itself, and many are shared out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sphinx.application import Sphinx

from atlas.incremental import few_pages_here


@pytest.mark.parametrize("number", [few_pages_here._FEW, few_pages_here._FEW + 1])
def test_a_few_are_read_here_and_then_all_is_shared_out_again(number: int, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for page in ["index", *(f"page-{place}" for place in range(number - 1))]:
        (docs / f"{page}.rst").write_text(":orphan:\n\nTitle\n=====\n", encoding="utf-8")
    app = Sphinx(docs, None, tmp_path / "out", tmp_path / "doctrees", "html", status=None, parallel=2)
    few_pages_here.setup(app)
    readers = tmp_path / "readers"
    app.connect("doctree-read", lambda app, tree: readers.open("a").write(f"{os.getpid()}\n"))
    app.build()
    read_by = readers.read_text(encoding="utf-8").split()
    assert len(read_by) == number
    assert (set(read_by) == {str(os.getpid())}) == (number <= few_pages_here._FEW)
    assert app.parallel == 2
