"""Code of a Markdown page that fails: a ``{doctest}``, and a ``{code-cell}``, which stops the build."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.broken import doc
from pages.tiny_site import ROOT, Build, build, written

# Sphinx names the line of the fence for the first example of a directive.
DOCTEST = doc(
    "wrong", "# Title\n\n```{doctest}\n>>> torch.tensor(1.0) * 2\ntensor(3.)\n```\n", "Failed example", "```{"
)
CELL = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# Title\n\n```{code-cell}\nundefined\n```\n"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    """Both builds, side by side, by their builders."""
    texts = {"doctest": {DOCTEST.file: DOCTEST.text}, "html": {"docs/cell.md": CELL}}
    sites = [written(tmp_path_factory.mktemp(builder), files) for builder, files in texts.items()]
    with ThreadPoolExecutor() as pool:
        return dict(zip(texts, pool.map(build, sites, texts), strict=True))


def test_a_doctest_that_fails(failed: dict[str, Build]) -> None:
    assert failed["doctest"].code != 0
    assert DOCTEST.is_reported(failed["doctest"].output), failed["doctest"].about(DOCTEST.file)


def test_a_cell_that_fails(failed: dict[str, Build]) -> None:
    """Left alone, MyST-NB prints a warning and the exit status is 0."""
    assert failed["html"].code != 0
    assert "cell.md" in failed["html"].output


def test_nox_builds_with_warnings_as_errors() -> None:
    """What is said of these sites holds for the real one: ``noxfile.py`` builds it as they are built."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (task,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "sphinx"]
    assert {"--fail-on-warning", "--keep-going", "--conf-dir"} <= {
        node.value for node in ast.walk(task) if isinstance(node, ast.Constant)
    }
