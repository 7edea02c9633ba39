"""A page that is built alone shows what other versions of PyTorch do, as it does among all others."""

from __future__ import annotations

from pathlib import Path

from atlas.page_alone.sources import lay
from atlas.versions import history, measured
from sources import ROOT


def test_the_data_of_versions_go_with_a_page(tmp_path: Path) -> None:
    lay(ROOT, "tensors/expand_and_aliasing", tmp_path)
    there = {version.torch for version in measured.load(tmp_path)}
    assert there == {version.torch for version in measured.load(ROOT)} and there
    assert history.load(tmp_path / "docs").holds_on("tensors/expand_and_aliasing")[0]
