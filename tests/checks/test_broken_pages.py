"""Each page of this site has a fault, and the build must fail and name it by file and line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sources import ROOT
from tiny.broken import Fault, head_of
from tiny.broken_docs import DOCS, PLOT
from tiny.broken_examples import EXAMPLES
from tiny.tiny_site import Build, build, copy_conf, written

FAULTS = [*EXAMPLES, *DOCS]
#: A handler of the site's own that fails on a page.
FAILING = """
from atlas.page_store import connect_for_pages

def fail(app, document):
    if app.env.docname == "crashes":
        1 / 0

def setup(app):
    connect_for_pages(app, "doctree-read", fail)
"""

CELL = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# Title\n\n```{code-cell}\n1 + missing\n```\n"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Build:
    conf = copy_conf(tmp_path_factory.mktemp("conf"))
    (conf / "failing.py").write_text(FAILING, encoding="utf-8")
    with (conf / "conf.py").open("a", encoding="utf-8") as settings:
        settings.write('extensions.append("failing")\n')
    files = {fault.file: fault.text for fault in FAULTS}
    files |= {"docs/crashes.md": "# Title\n\nText.\n", "docs/cell.md": CELL}
    return build(written(tmp_path_factory.mktemp("broken"), {"docs/plot.svg": PLOT, **files}), conf=conf)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.file)
def test_the_fault_is_named(broken: Build, fault: Fault) -> None:
    assert fault.is_reported(broken.output), broken.about(fault.file)


def test_no_generated_page_is_named(broken: Build) -> None:
    """Nobody edits it, and its lines are others than the script's."""
    assert broken.code != 0
    assert "/docs/gallery/" not in broken.output


def test_a_handler_that_fails_is_an_error_of_its_page(broken: Build) -> None:
    said = "ERROR: ZeroDivisionError: division by zero (in failing.fail, failing.py:6)"
    assert f"docs/crashes.md: {said}" in broken.output
    assert "Extension error" not in broken.output and "To report this error" not in broken.output


def test_a_cell_that_raises_is_named_with_its_page(broken: Build) -> None:
    """MyST-NB knows no line; the traceback shows the cell."""
    said = broken.output.partition("docs/cell.md: WARNING: Executing notebook failed:")[2]
    assert "name 'missing' is not defined" in said.partition("[mystnb.exec]")[0], broken.about("cell.md")


def test_nox_builds_with_warnings_as_errors() -> None:
    """What is said of these sites holds for the real one: ``noxfile.py`` builds it as they are built."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    (task,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run_sphinx"]
    given = {node.value for node in ast.walk(task) if isinstance(node, ast.Constant)}
    assert {"--fail-on-warning", "--keep-going", "--conf-dir"} <= given


PAGES = """tags = ["hooks", "sums"]

[chapters.a]
one = ["hooks", "sumz"]
two = ["sums"]
gone = ["sums"]
"""


def test_the_file_of_pages_fits_the_scripts_and_titles_differ(tmp_path: Path) -> None:
    files = {f"examples/a/{name}.py": head_of(name) for name in ("one", "two", "three")} | {"docs/two.md": "# two\n"}
    done = build(written(tmp_path, {**files, "examples/pages.toml": PAGES}), "dummy")
    assert done.code != 0
    for fault in (
        "ERROR: examples/pages.toml:4: there is no tag 'sumz': choose from hooks, sums",
        "ERROR: examples/pages.toml:6: there is no page a/gone: remove this line",
        'ERROR: examples/a/three.py: name this page in examples/pages.toml: three = ["TAG"] below [chapters.a]',
        f"docs/two.md:1: ERROR: this page has the title of {tmp_path}/examples/a/two.py:2",
    ):
        assert fault in done.output, done.output


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    conf = copy_conf(tmp_path)
    site = written(tmp_path, {"docs/latin.md": "# One\n\nGr\udcf6\n", "docs/mark.md": "\ufeff# Mark\n\nText.\n"})
    done = build(site, "dummy", conf=conf)
    assert done.is_refused_with(f"{site}/docs/latin.md:3: the file is not UTF-8: invalid"), done.output
    (site / "examples/pages.toml").write_text("tags = [a]\n", encoding="utf-8")
    done = build(site, "dummy", conf=conf)
    assert f"{site}/examples/pages.toml: this file is no TOML: Invalid value (at line 1, column 9)" in done.output
