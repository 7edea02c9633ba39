"""Every public name of torch.autograd, torch.func and torch.utils.checkpoint is on a page, or there is a reason why not."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

from markup import read

MODULES = [
    *("torch.autograd", "torch.autograd.forward_ad", "torch.autograd.function", "torch.autograd.functional"),
    *("torch.autograd.grad_mode", "torch.autograd.gradcheck", "torch.autograd.graph", "torch.autograd.profiler"),
    *("torch.func", "torch.utils.checkpoint"),
]
#: These pages are made of names: that one is there explains nothing.
LISTS = {"reference/names.html", "reference/operators.html", "reference/versions.html"}
#: Why a name is on no page, each reason with its names.
REASONS = {
    "a base of torch.autograd.Function, from which nobody else derives": "BackwardCFunction FunctionMeta",
    "what checkpoint() is made of; nobody else calls it": "SelectiveCheckpointContext CheckpointFunction "
    "DefaultDeviceType SAC_IGNORED_OPS "
    "check_backward_validity detach_variable get_device_states set_device_states",
    "what the profiler is made of": "EnforceUnique EventList FunctionEvent KinetoStepTracker MemRecordsAcc",
    "the time before mark_dirty(), which replaced it": "InplaceFunction",
    "a base of the recurrent networks before PyTorch 0.4": "NestedIOFunction",
    "marks ranges for a tool of Intel (VTune) or NVIDIA (Nsight), without which it shows nothing": "emit_itt emit_nvtx",
    "what gradcheck() is made of; nobody else calls it": "get_analytical_jacobian get_numerical_jacobian "
    "get_numerical_jacobian_wrt_specific_input",
    "reads files of nvprof, which NVIDIA has replaced": "load_nvprof parse_nvprof_trace",
    "is about CUDA streams, and shows nothing on a CPU": "set_override_stale_capture_stream",
}
WHY_NOT = {name for names in REASONS.values() for name in names.split()}
_WORD = re.compile(r"[A-Za-z_]\w*")


def public(module: str) -> set[str]:
    importlib.import_module(module)
    found = sys.modules[module]  # torch.autograd.gradcheck is a function, too
    return {name for name in found.__all__ if not inspect.ismodule(getattr(found, name))}


@pytest.fixture(scope="module")
def shown(site: Path) -> set[str]:
    """The words in the code of all pages, in their text too."""
    pages = [path for path in site.glob("*/**/*.html") if path.relative_to(site).as_posix() not in LISTS]
    code = (piece.get_text() for page in pages for piece in read(page).select("article :is(pre, code)"))
    return {word for piece in code for word in _WORD.findall(piece)}


@pytest.mark.parametrize("module", MODULES)
def test_each_is_shown_or_has_a_reason(module: str, shown: set[str]) -> None:
    names = public(module)
    missing = sorted(names - shown - WHY_NOT)
    assert names and not missing


def test_a_reason_is_for_a_name_that_is_not_shown(shown: set[str]) -> None:
    known = set().union(*map(public, MODULES))
    gone, needless = sorted(WHY_NOT - known), sorted(WHY_NOT & shown)
    assert not gone and not needless
