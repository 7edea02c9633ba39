"""What one example changes reaches no other, whatever it is."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable

from atlas import toolbox
from atlas.runner.processes.limits import Limits
from atlas.runner.processes.pool import Outcome
from runner.faulty import HEAD

_CHANGES = """
import matplotlib.pyplot as plt

torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.manual_seed(1)
torch.set_num_threads(2)
warnings.simplefilter("ignore")
plt.rcParams["font.size"] = 3
os.environ["ATLAS_TEST"] = "changed"
sys.path.insert(0, "elsewhere")
torch.ones_like = None
"""

_LOOKS = """
import matplotlib

print(torch.tensor(1.5).dtype, torch.is_grad_enabled(), torch.get_num_threads(), torch.rand(1).item())
print(matplotlib.rcParams["font.size"], os.environ.get("ATLAS_TEST"), "elsewhere" in sys.path, torch.ones_like is None)
print("error" in {action for action, *_ in warnings.filters})
"""


def _page(outcome: Outcome) -> str:
    assert outcome.fault is None, outcome.fault
    text = (outcome.job.place.made / f"{outcome.job.name}.rst").read_text()
    return text.partition("sphx-glr-script-out")[2].partition(".. rst-class::")[0]


def test_a_page_comes_out_the_same_whatever_runs_before_it(run: Callable[..., dict[str, Outcome]]) -> None:
    alone = _page(run({"looks": HEAD + _LOOKS})["looks"])
    after = _page(run({"changes": HEAD + _CHANGES, "looks": HEAD + _LOOKS}, Limits())["looks"])
    assert "torch.float32 True 1" in alone
    assert alone == after


def test_an_example_has_the_collector_of_a_new_python(run: Callable[..., dict[str, Outcome]]) -> None:
    told = "import gc; print(gc.get_threshold())"
    of_a_new_python = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout.strip()
    toolbox.collect_garbage_seldom()
    assert str(gc.get_threshold()) != of_a_new_python
    assert of_a_new_python in _page(run({"tells": f"{HEAD}{told}\n"})["tells"])
