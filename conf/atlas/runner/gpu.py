"""Whether there is a GPU, and what it is: asked in a process that ends, since one that has used CUDA may not fork."""

from __future__ import annotations

import json
import os
from typing import Any


def describe() -> dict[str, Any]:
    """The first CUDA device and what drives it; empty where PyTorch can use none.

    Keys: ``gpu`` (its name), ``cuda`` and ``driver`` (versions), ``memory`` (bytes).
    """
    if not os.path.exists("/dev/nvidiactl"):
        return {}
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.write(writer, json.dumps(_ask()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else {}


def _ask() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {}
    device = torch.cuda.get_device_properties(0)
    driver = torch._C._cuda_getDriverVersion()
    return {
        "gpu": device.name,
        "cuda": torch.version.cuda,
        "driver": f"{driver // 1000}.{driver % 1000 // 10}",
        "memory": device.total_memory,
    }
