"""An example that cannot run is named, and does not keep the build from looking at the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny.broken import Fault, example, head_of
from tiny.tiny_site import Build, build, written

PLOT = "import matplotlib.pyplot as plt\n\nplt.plot([1, 2])\n"
MARK, EMPTY, BARE, LATIN = (f"examples/faults/a_{name}.py" for name in ("mark", "empty", "bare", "latin"))
STOPS = [
    example("a_syntax", "x = 1\nx = = 2\n", "SyntaxError: invalid syntax", "x = = 2"),
    Fault(MARK, "\ufeff" + head_of("A mark") + "x = 1\n", "save it as UTF-8 without BOM", '\ufeff"""'),
    Fault(EMPTY, "", "a page begins with a docstring"),
    Fault(BARE, "x = 1\n", "a page begins with a docstring", "x = 1"),
    Fault(LATIN, head_of("Latin-1") + "x = '\udcff'\n", "save it as UTF-8", "x ="),
    example("e_figure_left_open", f"{PLOT}# varies:\n", "say what varies", "# varies"),
    example("h_last", "assert torch is None, 'the last'\n", "AssertionError: the last", "assert"),
]
FINE = "examples/faults/g_is_fine.py"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Build:
    files = {fault.file: fault.text for fault in STOPS} | {FINE: head_of("Fine") + "x = 1\n"}
    return build(written(tmp_path_factory.mktemp("stops"), files))


@pytest.mark.parametrize("fault", STOPS, ids=lambda fault: fault.file)
def test_the_script_is_named(stopped: Build, fault: Fault) -> None:
    assert stopped.code != 0 and fault.is_reported(stopped.output), stopped.about(fault.file)


def test_each_that_has_a_title_has_a_page_that_says_so(stopped: Build) -> None:
    """And the rest of the site is built, though sphinx-gallery and others read these scripts too."""
    assert "Traceback" not in stopped.output and "Extension error" not in stopped.output, stopped.output
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (stopped.out / "gallery/faults").glob("*.html")}
    failed = {Path(fault.file).stem for fault in STOPS} - {"a_empty", "a_bare", "a_latin"}
    assert set(pages) == failed | {"index", "g_is_fine"}
    assert {name for name, page in pages.items() if "This page has no outputs" in page} == failed
