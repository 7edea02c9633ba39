"""Read what a graph's nodes saved before backward frees it, for the figures that are drawn after it.

The script runs as it would alone: nothing of PyTorch is replaced, and a traceback shows no frame of ours. ``line_watcher``
tells that the function was called that hands the roots to the engine.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import FrameType

from .request_comments import asks_for_graphs

FUNCTION = "_engine_run_backward"
"""Of ``torch.autograd.graph``: ``Tensor.backward``, ``autograd.backward`` and ``autograd.grad`` all call it."""
_MOST = 500
"""A script that calls backward more often than that trains something; the figures are of its first calls."""
_calls = 0


def entered(name: str, frame: FrameType) -> None:
    """Remember the operands of the graph of ``t_outputs``, if the script ``name`` called, and asks for figures of graphs."""
    global _calls
    if _calls >= _MOST or not _is_asked_by(name, frame):
        return
    _calls += 1
    from graphs.nodes import remember_operands

    outputs = frame.f_locals.get("t_outputs", ())
    try:
        starts = [output.grad_fn if hasattr(output, "grad_fn") else output.node for output in outputs]
    except RuntimeError:  # a view whose base was changed in place does not say, and backward is about to refuse it
        return
    remember_operands(starts)


def _is_asked_by(name: str, frame: FrameType | None) -> bool:
    while frame is not None:
        path = frame.f_code.co_filename
        if path.endswith(name) and Path(path).name == name:
            return _asks(path)
        frame = frame.f_back
    return False


@cache
def _asks(path: str) -> bool:
    return asks_for_graphs(Path(path).read_text(encoding="utf-8"))
