"""Whether there is a GPU is PyTorch's to say, wherever a device of NVIDIA's driver is."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from atlas.runner import gpu


@pytest.mark.parametrize(
    ("device", "asked"), [("/dev/nvidiactl", True), ("/dev/dxg", True), ("/dev/null", False)], ids=str
)
def test_pytorch_is_asked_where_there_is_a_device(monkeypatch: pytest.MonkeyPatch, device: str, asked: bool) -> None:
    """``/dev/dxg`` is what WSL2 has."""
    monkeypatch.setattr(os.path, "exists", lambda path: path == device)
    monkeypatch.setattr(gpu, "_ask", lambda: {"gpu": "Test GPU"})
    assert gpu.describe() == ({"gpu": "Test GPU"} if asked else {})


def fails() -> dict[str, str]:
    raise AttributeError("no such name in this version")


def ends() -> dict[str, str]:
    os._exit(1)


@pytest.mark.parametrize(("asking", "said"), [(fails, "no such name in this version"), (ends, "without a word")])
def test_a_question_that_fails_is_no_machine_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, asking: Callable[[], dict[str, str]], said: str
) -> None:
    monkeypatch.setattr(gpu, "may_be_here", lambda: True)
    monkeypatch.setattr(gpu, "_ask", asking)
    with pytest.raises(RuntimeError, match=said):
        gpu.describe()


def test_a_driver_that_hangs_does_not_hang_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "may_be_here", lambda: True)
    monkeypatch.setattr(gpu, "_ask", lambda: time.sleep(20) or {})
    monkeypatch.setattr(gpu, "TIME_LIMIT", 0.5, raising=False)
    asked: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: asked.append(fork()) or asked[-1])
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"no answer within 0\.5 s"):
        gpu.describe()
    assert time.monotonic() - started < 15
    (pid,) = asked
    with pytest.raises(ChildProcessError):  # it was ended, and nothing of it is left
        os.waitpid(pid, os.WNOHANG)


def test_it_tells_what_the_device_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as a machine without one can see: the names of PyTorch that are asked, and the form of the answer."""
    device = SimpleNamespace(name="Test GPU", total_memory=1)
    driver = SimpleNamespace(cuDriverGetVersion=lambda served: setattr(served._obj, "value", 12040))
    monkeypatch.setattr(gpu, "may_be_here", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: device)
    libraries = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver if name == "libcuda.so.1" else libraries(name))
    assert gpu.describe() == {"gpu": "Test GPU", "cuda": torch.version.cuda, "driver": "12.4", "memory": 1}
