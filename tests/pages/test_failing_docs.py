"""Code of a Markdown page that fails: a ``{doctest}``, and a ``{code-cell}``, which stops the build."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pages.broken import doc
from pages.tiny_site import ROOT, Build, build, written

# Sphinx names the line of the fence for the first example of a directive.
DOCTEST = doc(
    "wrong", "# Title\n\n```{doctest}\n>>> torch.tensor(1.0) * 2\ntensor(3.)\n```\n", "Failed example", "```{"
)
CELL = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# Title\n\n```{code-cell}\nundefined\n```\n"


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build(written(tmp_path_factory.mktemp("cell"), {"docs/cell.md": CELL}))


def test_a_doctest_that_fails(tmp_path: Path) -> None:
    failed = build(written(tmp_path, {DOCTEST.file: DOCTEST.text}), "doctest")
    assert failed.code != 0
    assert DOCTEST.is_reported(failed.output), failed.about(DOCTEST.file)


def test_a_cell_that_fails(cell: Build) -> None:
    """Trap 2: left alone, MyST-NB prints a warning and the exit status is 0."""
    assert cell.code != 0
    assert "cell.md" in cell.output


def test_nox_builds_with_warnings_as_errors() -> None:
    """Trap 2, the other half: these sites are built as ``noxfile.py`` builds the real one."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (task,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "sphinx"]
    assert {"--fail-on-warning", "--keep-going", "--conf-dir"} <= {
        node.value for node in ast.walk(task) if isinstance(node, ast.Constant)
    }
