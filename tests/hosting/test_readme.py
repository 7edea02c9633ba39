"""README.md names what there is."""

from __future__ import annotations

from sources import ROOT


def test_the_tree_has_each_part() -> None:
    _, _, tree = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Where things are")
    tree, _, _ = tree.partition("\n## ")
    conf = [f"conf/{path.name}" for path in (ROOT / "conf").iterdir() if path.name != "__pycache__"]
    tests = [f"{path.name}/" for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert not [part for part in (*conf, *tests) if part not in tree]
