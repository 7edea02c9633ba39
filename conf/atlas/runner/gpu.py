"""Whether there is a GPU, and what it is: asked in a process that ends, since one that has used CUDA may not fork."""

from __future__ import annotations

import ctypes
import json
import os
import traceback
from typing import Any


def may_be_here() -> bool:
    """Whether there is a device of NVIDIA's driver, on Linux or in Windows' own Linux. Only PyTorch knows whether it works."""
    return any(os.path.exists(device) for device in ("/dev/nvidiactl", "/dev/dxg"))


def describe() -> dict[str, Any]:
    """The first CUDA device and what drives it; empty where PyTorch can use none.

    Keys: ``gpu`` (its name), ``cuda`` and ``driver`` (the versions of CUDA that PyTorch was built for, and that the driver
    serves), ``memory`` (bytes).

    :raises RuntimeError: if the asking itself fails; that must not pass for a machine without a GPU.
    """
    if not may_be_here():
        return {}
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            try:
                said = _ask()
            except BaseException:
                said = {"error": traceback.format_exc()}
            os.write(writer, json.dumps(said).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = json.loads(answer.read() or '{"error": "the process that asked ended without a word"}')
    os.waitpid(pid, 0)
    if "error" in said:
        raise RuntimeError(f"PyTorch could not be asked what GPU is here:\n{said['error']}")
    return said


def _ask() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {}
    device = torch.cuda.get_device_properties(0)
    # PyTorch has no public way to ask, and its private one comes and goes between versions
    served = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(served))
    return {
        "gpu": device.name,
        "cuda": torch.version.cuda,
        "driver": f"{served.value // 1000}.{served.value % 1000 // 10}",
        "memory": device.total_memory,
    }
