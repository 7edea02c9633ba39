"""An example that cannot run is named, and does not keep the build from looking at the others."""

from __future__ import annotations

import re

import pytest

from tiny.broken import HEAD, Fault, example
from tiny.tiny_site import Build, build, written

CHANGES = """\
import warnings

import matplotlib as mpl

torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.autograd.set_detect_anomaly(True, check_nan=False)
warnings.simplefilter("ignore")
mpl.rcParams["lines.linewidth"] = 17.0
print(undefined)
"""
FRESH = """\
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt

assert torch.get_default_dtype() == torch.float32
assert torch.is_grad_enabled() and not torch.is_anomaly_enabled()
assert warnings.filters[-1][0] == "error"
assert mpl.rcParams["lines.linewidth"] == 2.0
assert not plt.get_fignums()
"""
PLOT = "import matplotlib.pyplot as plt\n\nplt.plot([1, 2])\n"
STOPS = [
    example("a_syntax", "x = 1\nx = = 2\n", "SyntaxError: invalid syntax", "x = = 2"),
    example("b_graph", "y = undefined\n# graph: y -- Never made\n", "NameError: name 'undefined'", "y ="),
    example("c_figure", "y = undefined\n# figure: Never drawn\n", "NameError: name 'undefined'", "y ="),
    example("d_assert", "y = undefined\nassert y\n", "NameError: name 'undefined'", "y ="),
    example("e_figure_left_open", f"{PLOT}# varies:\n", "say what varies", "# varies"),
    example("f_changes", CHANGES, "NameError: name 'undefined'", "print"),
    example("h_last", "assert torch is None, 'the last'\n", "AssertionError: the last", "assert"),
]
FINE = "examples/faults/g_is_fine.py"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Build:
    files = {fault.file: fault.text for fault in STOPS} | {FINE: HEAD + FRESH}
    return build(written(tmp_path_factory.mktemp("stops"), files))


def test_the_build_fails(stopped: Build) -> None:
    assert stopped.code != 0


@pytest.mark.parametrize("fault", STOPS, ids=lambda fault: fault.file)
def test_the_script_is_named(stopped: Build, fault: Fault) -> None:
    assert fault.is_reported(stopped.output), stopped.about(fault.file)


def test_no_other_is_blamed(stopped: Build) -> None:
    """What a script changed, and the figure it left open, are gone when the next one runs, though it ended early."""
    blamed = re.search(r'g_is_fine(?:\.py)?(?::\d|", line| unexpectedly| failed| FAILED)', stopped.output)
    assert not blamed, stopped.about(FINE)
