"""A change in the site's own code changes what Sphinx compares, so that every page is read again."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

import atlas
from atlas import code_version


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "one.py").write_text("x = 1\n")
    (tmp_path / "look.mplstyle").write_text("lines.linewidth: 2\n")
    return tmp_path


def test_a_changed_byte_a_new_name_and_a_new_file_are_noticed(code: Path) -> None:
    seen = {code_version(code)}
    (code / "pages" / "one.py").write_text("x = 2\n")
    seen.add(code_version(code))
    (code / "pages" / "one.py").rename(code / "pages" / "two.py")
    seen.add(code_version(code))
    (code / "three.py").write_text("")
    seen.add(code_version(code))
    assert len(seen) == 4


def test_so_is_a_style_that_figures_are_drawn_with(code: Path) -> None:
    before = code_version(code)
    (code / "look.mplstyle").write_text("lines.linewidth: 3\n")
    assert code_version(code) != before


@pytest.mark.parametrize("package", ["pandas", "docutils", "torch", "pypandoc-binary"])
def test_so_is_another_version_of_what_shapes_a_page(
    code: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = code_version(code)
    monkeypatch.setattr(atlas, "version", lambda name: "0.0.1" if name == package else version(name))
    assert code_version(code) != before


def test_the_version_of_each_extension_counts(root: Path) -> None:
    """Its style sheets and its HTML are on the pages."""
    conf = runpy.run_path(str(root / "conf" / "conf.py"))
    modules = {name.partition(".")[0] for name in [*conf["extensions"], conf["html_theme"]]} - {"atlas"}
    packages = {package for module in modules for package in packages_distributions()[module]}
    assert {re.sub(r"[-_.]+", "-", package).lower() for package in packages} <= set(atlas._SHAPING)


def test_what_python_compiles_is_not(code: Path) -> None:
    before = code_version(code)
    (code / "pages" / "__pycache__").mkdir()
    (code / "pages" / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"compiled")
    assert code_version(code) == before
