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
    "torch.autograd",
    "torch.autograd.forward_ad",
    "torch.autograd.function",
    "torch.autograd.functional",
    "torch.autograd.grad_mode",
    "torch.autograd.gradcheck",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.func",
    "torch.utils.checkpoint",
]
#: These pages are made of names: that one is there explains nothing.
LISTS = {"reference/names.html", "reference/operators.html", "reference/versions.html"}
OF_OLD_RNNS = "a base of the recurrent networks before PyTorch 0.4; nothing in PyTorch derives from it"
OF_FUNCTION = "a base of torch.autograd.Function, from which nobody else derives"
OF_PROFILER = "what the profiler is made of; its pages show profile() and what it returns"
OF_CHECKPOINT = "what checkpoint() is made of; nobody else calls it"
OF_NVPROF = "reads files of nvprof, which NVIDIA has replaced"
NEEDS_A_TOOL = "marks ranges for a program of {}, without which it shows nothing"
NEEDS_A_GPU = "is about CUDA streams, and shows nothing on a CPU"
OF_GRADCHECK = "what gradcheck() is made of; nobody else calls it"
WHY_NOT = {
    "BackwardCFunction": OF_FUNCTION,
    "CheckpointFunction": OF_CHECKPOINT,
    "DefaultDeviceType": OF_CHECKPOINT,
    "EnforceUnique": OF_PROFILER,
    "EventList": OF_PROFILER,
    "FunctionEvent": OF_PROFILER,
    "FunctionMeta": OF_FUNCTION,
    "InplaceFunction": "the time before mark_dirty(), which replaced it",
    "KinetoStepTracker": OF_PROFILER,
    "MemRecordsAcc": OF_PROFILER,
    "NestedIOFunction": OF_OLD_RNNS,
    "SAC_IGNORED_OPS": OF_CHECKPOINT,
    "check_backward_validity": OF_CHECKPOINT,
    "detach_variable": OF_CHECKPOINT,
    "emit_itt": NEEDS_A_TOOL.format("Intel (VTune)"),
    "emit_nvtx": NEEDS_A_TOOL.format("NVIDIA (Nsight Systems)"),
    "get_analytical_jacobian": OF_GRADCHECK,
    "get_device_states": OF_CHECKPOINT,
    "get_numerical_jacobian": OF_GRADCHECK,
    "get_numerical_jacobian_wrt_specific_input": OF_GRADCHECK,
    "load_nvprof": OF_NVPROF,
    "noop_context_fn": OF_CHECKPOINT,
    "parse_nvprof_trace": OF_NVPROF,
    "rearrange": "is einops' function for named axes, and has nothing to do with derivatives",
    "set_device_states": OF_CHECKPOINT,
    "set_override_stale_capture_stream": NEEDS_A_GPU,
    "set_warn_on_accumulate_grad_stream_mismatch": NEEDS_A_GPU,
}
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
    missing = sorted(names - shown - set(WHY_NOT))
    assert names and not missing


def test_a_reason_is_for_a_name_that_is_not_shown(shown: set[str]) -> None:
    known = set().union(*map(public, MODULES))
    gone, needless = sorted(set(WHY_NOT) - known), sorted(set(WHY_NOT) & shown)
    assert not gone and not needless
