"""Code of a Markdown page that fails: a ``{doctest}``, and a ``{code-cell}`` that raises or hangs."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from sources import ROOT
from tiny.broken import doc
from tiny.tiny_site import Build, build, written

# Sphinx names the line of the fence for the first example of a directive.
DOCTEST = doc(
    "wrong", "# Title\n\n```{doctest}\n>>> torch.tensor(1.0) * 2\ntensor(3.)\n```\n", "Failed example", "```{"
)
HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# Title\n\n"
CELLS = {
    "raises": ("x = 1\nx + missing", "name 'missing' is not defined"),
    "hangs": ("import time\ntime.sleep(1000)", "A cell timed out"),
}


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    """Both builds, side by side, by their builders."""
    cells = {f"docs/{name}.md": f"{HEAD}```{{code-cell}}\n{code}\n```\n" for name, (code, _says) in CELLS.items()}
    texts = {"doctest": {DOCTEST.file: DOCTEST.text}, "html": cells}
    sites = [written(tmp_path_factory.mktemp(builder), pages) for builder, pages in texts.items()]
    options = ["-D", "nb_execution_timeout=5"]
    with ThreadPoolExecutor() as pool:
        return dict(zip(texts, pool.map(lambda *site: build(*site, options), sites, texts), strict=True))


def test_a_doctest_that_fails(failed: dict[str, Build]) -> None:
    assert failed["doctest"].code != 0
    assert DOCTEST.is_reported(failed["doctest"].output), failed["doctest"].about(DOCTEST.file)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_that_fails_is_named_with_its_page(failed: dict[str, Build], name: str) -> None:
    """MyST-NB knows no line; the traceback shows the cell. The build goes on to what else is wrong."""
    html = failed["html"]
    assert html.code != 0
    (_, said) = html.output.split(f"docs/{name}.md: WARNING: Executing notebook failed:", 1)
    assert CELLS[name][1] in said.partition("[mystnb.exec]")[0], html.about(name)


def test_nox_builds_with_warnings_as_errors() -> None:
    """What is said of these sites holds for the real one: ``noxfile.py`` builds it as they are built."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (task,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_sphinx"]
    assert {"--fail-on-warning", "--keep-going", "--conf-dir"} <= {
        node.value for node in ast.walk(task) if isinstance(node, ast.Constant)
    }
