"""Code of a Markdown page that fails: a ``{doctest}``, and a ``{code-cell}`` that raises, hangs or dies."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import myst_nb.core.execute
import pytest
from bs4 import BeautifulSoup

from atlas.checks import code_cell_errors
from tiny.broken import Fault, doc
from tiny.tiny_site import ROOT, Build, build, written

# Sphinx names the line of the fence for the first example of a directive.
DOCTEST = doc(
    "wrong", "# Title\n\n```{doctest}\n>>> torch.tensor(1.0) * 2\ntensor(3.)\n```\n", "Failed example", "```{"
)


def cells(name: str, code: str, says: str, at: str) -> Fault:
    """A page whose second cell fails, with a third below it."""
    head = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# Title\n\n"
    fences = [
        f"```{{code-cell}}\n:tags: [hide-input]\n\n{part}\n```\n\n"
        for part in ("x = 1", code, 'print("not", "reached")')
    ]
    return doc(name, head + "".join(fences), f"this cell failed: {says}", at)


CELLS = [
    cells("raises", "y = x\nx + missing", "NameError: name 'missing' is not defined", "x + missing"),
    cells("asserts", "y = x\n\nassert x == 2", "AssertionError", "assert x"),
    cells("misspelt", "y = x\nfor", "SyntaxError: invalid syntax", "for"),
    cells("hangs", "import time\ntime.sleep(1000)", "it did not end within 5 s; make it shorter", "import time"),
    cells("dies", "import os\nos._exit(1)", "its process has ended", "import os"),
]


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    """Both builds, side by side, by their builders."""
    texts = {"doctest": [DOCTEST], "html": CELLS}
    sites = [
        written(tmp_path_factory.mktemp(builder), {page.file: page.text for page in pages})
        for builder, pages in texts.items()
    ]
    options = ["-D", "nb_execution_timeout=5"]
    with ThreadPoolExecutor() as pool:
        return dict(zip(texts, pool.map(lambda *site: build(*site, options), sites, texts), strict=True))


def test_a_doctest_that_fails(failed: dict[str, Build]) -> None:
    assert failed["doctest"].code != 0
    assert DOCTEST.is_reported(failed["doctest"].output), failed["doctest"].about(DOCTEST.file)


@pytest.mark.parametrize("page", CELLS, ids=lambda page: page.file)
def test_a_cell_that_fails(failed: dict[str, Build], page: Fault) -> None:
    """It is named with its line, its page shows it, and no cell after it looks as if it had run."""
    html = failed["html"]
    assert html.code != 0
    assert page.is_reported(html.output), html.about(page.file)
    shown = (html.out / Path(page.file).with_suffix(".html").name).read_text(encoding="utf-8")
    article = BeautifulSoup(shown, "html.parser").article
    (said,) = article.select(".traceback")
    assert page.says.removeprefix("this cell failed: ") in said.get_text()
    assert "not reached" not in article.get_text()


def test_a_cell_that_was_mended(tmp_path: Path) -> None:
    """Nothing of the failure is left."""
    page = cells("guide/mended", "y = x + missing", "NameError", "y = x")
    assert build(written(tmp_path, {page.file: page.text})).code != 0
    mended = build(written(tmp_path, {page.file: page.text.replace("missing", "1")}))
    assert mended.code == 0, mended.about(page.file)
    assert not (mended.out / "reports").exists()


def test_another_version_of_myst_nb_runs_its_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the build says so: a newer one may name the line itself."""
    said: list[str] = []
    theirs = myst_nb.core.execute.NotebookClientInline
    monkeypatch.setattr(code_cell_errors.logger, "warning", lambda text, *values: said.append(text % values))
    monkeypatch.setattr(code_cell_errors, "has_bug", lambda package, last: False)
    code_cell_errors.setup(SimpleNamespace(connect=lambda *what: None))
    assert myst_nb.core.execute.NotebookClientInline is theirs
    assert said == [
        "MyST-NB has changed: a cell that fails may be named without its line; see atlas.checks.code_cell_errors"
    ]


def test_nox_builds_with_warnings_as_errors() -> None:
    """What is said of these sites holds for the real one: ``noxfile.py`` builds it as they are built."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (task,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "sphinx"]
    assert {"--fail-on-warning", "--keep-going", "--conf-dir"} <= {
        node.value for node in ast.walk(task) if isinstance(node, ast.Constant)
    }
