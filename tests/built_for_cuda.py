"""Run an example as the build does, where PyTorch seems to be built for CUDA (``build``), or to have a GPU (``gpu``).

pip brings that PyTorch on an ordinary Linux machine. It is gigabytes large, so here the one for the CPU answers as it does: the
answers are those of 2.13.0+cu130 on a machine without a driver, with ``nvcc``. It fails if an assert never ran.
"""

from __future__ import annotations

import ast
import mmap
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

sys.path.insert(0, str(Path(__file__).parents[1] / "conf"))

from atlas.gallery import asserts, sphinx_gallery_patches
from atlas.gallery.scripts import find_marks, read_script

NO_DRIVER = (
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from "
    "http://www.nvidia.com/Download/index.aspx"
)


class Generator(torch.Generator):
    """Asks for the driver if it is to be on a GPU."""

    def __new__(cls, device: Any = "cpu") -> torch.Generator:
        if torch.device(device).type == "cuda":
            raise torch.AcceleratorError("CUDA error: CUDA driver version is insufficient for CUDA runtime version")
        return torch._C.Generator(device)


def ask_driver(*_: object) -> NoReturn:
    raise RuntimeError(NO_DRIVER)


def imitate_build() -> None:
    """Have PyTorch answer as if it was built for CUDA."""
    torch.version.cuda = "13.0"
    torch.__version__ = type(torch.__version__)(torch.__version__.partition("+")[0] + "+cu130")
    torch.Generator = Generator
    torch.cuda._cudart = object()
    torch._C._has_cuda = True
    torch._C._cuda_init = torch._C._cuda_getCurrentRawStream = ask_driver
    torch._C._cuda_getDeviceCount = lambda: 0
    torch._C._cuda_getArchFlags = lambda: "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
    torch._C._cuda_setDevice = lambda device: torch.cuda.init()
    os.environ["CUDA_HOME"] = "/usr/local"  # where nvcc would be


class ImitatedGpu(TorchFunctionMode):
    """Computes on the CPU what a program puts on a GPU, and keeps the two apart: PyTorch refuses tensors of both in one call.

    A tensor on the GPU has the attribute ``on_gpu``. What C++ makes of it, as a gradient, has it when it is read.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = func.__name__, tree_leaves((args, kwargs))
        if name in ("device", "_parse_to"):
            return func(*args, **(kwargs or {}))
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        places = [hasattr(one, "on_gpu") for one in tensors if one.dim() or hasattr(one, "on_gpu")]
        if len({*places}) == 2 and name not in MOVES:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found cuda:0 and cpu in {name}")
        if func == torch.Tensor.device.__get__ and places == [True]:
            return torch.device("cuda", 0)
        asked = [name, *(str(one) for one in given if isinstance(one, str | torch.device))]
        goes = next((one for one in asked if one.startswith(("cuda", "cpu"))), None)
        run = torch.Tensor.cpu if func is torch.Tensor.cuda else func
        made = run(
            *tree_map(leave_on_cpu, args[:1] if run is not func else args), **tree_map(leave_on_cpu, kwargs or {})
        )
        if func == torch.Tensor.data.__set__:
            vars(args[0]).pop("on_gpu", None)
            vars(args[0]).update(vars(args[1]))
        to_gpu = goes.startswith("cuda") if goes else places[:1] == [True]
        if goes and tensors and made is tensors[0] and to_gpu != hasattr(made, "on_gpu"):
            made = made.clone()
        for one in tree_leaves(made) if to_gpu else []:
            if isinstance(one, torch.Tensor):
                one.on_gpu = True
        return made


#: What takes tensors of both devices.
MOVES = {"to", "copy_", "__set__", "_has_compatible_shallow_copy_type"}


def leave_on_cpu(value: Any) -> Any:
    is_gpu = isinstance(value, str | torch.device) and str(value).startswith("cuda")
    return torch.device("cpu") if is_gpu else value


def imitate_gpu() -> None:
    """Have PyTorch answer as if there were a GPU, whose work the CPU does."""
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda device: SimpleNamespace(total_memory=1, multi_processor_count=1)
    ImitatedGpu().__enter__()


def run_example(script: Path) -> None:
    """Run what of a script needs no GPU.

    :raises ClaimError: if an assert in it never ran.
    """
    text = read_script(script)
    end = next(iter(find_marks(text)), None)
    asserts.start_watching(mmap.mmap(-1, 8), end)
    code = asserts.WatchedCompile()(ast.parse(text, str(script)), str(script), "exec")
    main = sys.modules["__main__"] = ModuleType("__main__")
    try:
        exec(code, main.__dict__)
    except SystemExit as ended:  # a page with a second half ends so
        if ended.code:
            raise
    last = list(sphinx_gallery_patches.read_code_cells(script, end))[-1]
    asserts.report_asserts(SimpleNamespace(lineno=last), {"src_file": str(script)})


if __name__ == "__main__":
    {"build": imitate_build, "gpu": imitate_gpu}[sys.argv[1]]()
    run_example(Path(sys.argv[2]))
