"""Whether there is a GPU, and which. A process that has used CUDA must not fork, so a child process asks, and ends."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import time
import traceback
from typing import Any

from .processes import ending

TIME_LIMIT = 120.0
"""Seconds for the answer. A GPU that nobody uses takes some to wake up, and PyTorch must be imported, on a busy machine too."""


def may_be_here() -> bool:
    """Whether there is a device of NVIDIA's driver, on Linux or in WSL. Only PyTorch knows whether it works."""
    return any(os.path.exists(device) for device in ("/dev/nvidiactl", "/dev/dxg"))


def describe() -> dict[str, Any]:
    """The first CUDA device and what drives it; empty where PyTorch can use none.

    Keys: ``gpu`` (its name), ``cuda`` and ``driver`` (the versions of CUDA that PyTorch was built for, and that the driver
    serves), ``memory`` (bytes).

    :raises RuntimeError: if PyTorch fails, or does not answer in ``TIME_LIMIT``. That is not a machine without a GPU.
    """
    if not may_be_here():
        return {}
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            ending.with_parent(parent)
            os.close(reader)
            try:
                said = _ask()
            except BaseException:
                said = {"error": traceback.format_exc()}
            os.write(writer, json.dumps(said).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        answer = _read(reader)
    finally:
        os.close(reader)
        os.kill(pid, signal.SIGKILL)
        _wait(pid)
    said = json.loads(answer or '{"error": "the process that asked ended without a word"}')
    if "error" in said:
        raise RuntimeError(f"PyTorch could not be asked what GPU is here:\n{said['error']}")
    return said


def _read(pipe: int) -> bytes:
    """What comes from ``pipe`` until it is closed.

    :raises RuntimeError: if that takes longer than ``TIME_LIMIT``.
    """
    until = time.monotonic() + TIME_LIMIT
    said = b""
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return said
        said += part
    raise RuntimeError(
        f"PyTorch was asked what GPU is here, and gave no answer within {TIME_LIMIT:g} s; does `nvidia-smi` answer?"
    )


def _wait(pid: int) -> None:
    """Wait for a killed process, but not long: one that hangs inside of the driver cannot be killed."""
    until = time.monotonic() + 5.0
    while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < until:
        time.sleep(0.01)


def _ask() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {}
    device = torch.cuda.get_device_properties(0)
    # PyTorch has no public function for this, and its private one is missing in some versions
    served = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(served))
    return {
        "gpu": device.name,
        "cuda": torch.version.cuda,
        "driver": f"{served.value // 1000}.{served.value % 1000 // 10}",
        "memory": device.total_memory,
    }
