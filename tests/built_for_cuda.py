"""Run an example as the build does, with a PyTorch that seems to be built for CUDA, where there is no GPU.

pip brings that PyTorch on an ordinary Linux machine. It is gigabytes large, so here the one for the CPU answers as it does: the
answers are those of 2.13.0+cu130 on a machine without a driver, with ``nvcc``. It fails if an assert never ran.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "conf"))

from atlas.cells import assert_counter, line_watcher
from atlas.runner import halves, sphinx_gallery_api

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


def run_example(script: Path) -> None:
    """Run what of a script needs no GPU.

    :raises ClaimError: if an assert in it never ran.
    """
    end = next(iter(halves.marks(script.read_text(encoding="utf-8"))), None)
    assert_counter.end_at(end)
    assert_counter.watch({}, script.name)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:  # a page with a second half ends so
        if ended.code:
            raise
    finally:
        line_watcher.stop()
    last = sphinx_gallery_api.cells(script, end)[-1]
    assert_counter.scrape(SimpleNamespace(lineno=last), {"src_file": str(script)}, {})


if __name__ == "__main__":
    imitate_build()
    run_example(Path(sys.argv[1]))
