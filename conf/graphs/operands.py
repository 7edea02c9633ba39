"""With what numbers a node computed, as far as it saved them. Backward frees what is saved, so it is read before.

Nothing is unpacked that a saved-tensor hook packed. What is read is remembered on the node as plain numbers, which keep no
tensor alive.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from graphs.javascript import ELEMENTWISE

LARGEST = 128
"""A tensor of more numbers is not read."""
_MOST_NODES = 200
_REMEMBERED = "atlas.operands"

#: What a node saves, by the name of the attribute: the number of its input, or -1 for its result.
_SAVED = {"self": 0, "other": 1, "result": -1}

#: The numbers that a node was called with.
_CALLED_WITH = {
    "ClampBackward1": ("_saved_min", "_saved_max"),
    "MulBackward1": ("_saved_other",),
    "PowBackward0": ("_saved_exponent",),
}

#: What must hold of a node for its rule to hold: of most calls it does.
_USUAL = {
    "AddBackward0": {"alpha": 1},
    "RsubBackward1": {"alpha": 1},
    "SoftplusBackward0": {"beta": 1, "threshold": 20},
    "SubBackward0": {"alpha": 1},
}

#: Nodes that do something with whole tensors: ``program`` says what.
OF_TENSORS = frozenset(
    f"{name}Backward0"
    for name in ("Clone", "Expand", "Mean", "Prod", "Select", "Stack", "Sum", "T", "Unbind", "View")
)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a node saved."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...]
    address: int
    """Where its memory begins: a tensor that was detached from another shares it."""


def is_accumulate(node: Any) -> bool:
    return type(node).__name__ == "AccumulateGrad"


def is_known(node: Any) -> bool:
    """Whether there is a rule for what ``node`` does, and the call was one that it holds for."""
    name = type(node).__name__
    usual = _USUAL.get(name, {})
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return False
    if name not in ELEMENTWISE and name not in OF_TENSORS:
        return False
    return all(getattr(node, f"_saved_{attribute}") == value for attribute, value in usual.items())


def called_with(node: Any) -> tuple[float, ...] | None:
    """The numbers in the call of ``node``; None if one of them is none."""
    numbers = [getattr(node, attribute) for attribute in _CALLED_WITH.get(type(node).__name__, ())]
    if type(node).__name__ == "ClampBackward1":
        numbers = [
            limit if bound is None else bound for bound, limit in zip(numbers, (-math.inf, math.inf), strict=True)
        ]
    return None if any(isinstance(number, complex) for number in numbers) else tuple(map(float, numbers))


def remember(starts: Iterable[Any]) -> None:
    """Read the operands of all nodes that ``starts`` lead to, if there is a rule for each of them and they are few."""
    if torch._C._len_torch_dispatch_stack():
        return  # what is computed now is not numbers: a compiler traces, or a mode answers instead of PyTorch
    seen, queue = set(), deque(node for node in starts if node is not None)
    while queue:
        node = queue.popleft()
        if node in seen or is_accumulate(node):
            continue
        if len(seen) >= _MOST_NODES or not is_known(node):
            return
        seen.add(node)
        queue.extend(source for source, _ in node.next_functions if source is not None)
    for node in seen:
        operands(node)


def operands(node: Any) -> dict[int, Operand]:
    """What ``node`` saved by the number of its input, -1 for its result: now, or as remembered before it was freed."""
    remembered = node.metadata.get(_REMEMBERED)
    if remembered is None:
        remembered = dict(_read(node))
        if remembered:
            node.metadata[_REMEMBERED] = remembered
    return remembered


def _read(node: Any) -> Iterator[tuple[int, Operand]]:
    for name, place in _SAVED.items():
        try:
            saved = getattr(node, f"_raw_saved_{name}", None)
            if saved is None or getattr(saved, "unpack_hook", True) is not None:
                continue
            tensor = saved.data
        except RuntimeError:  # it is freed
            return
        if isinstance(tensor, torch.Tensor) and (found := operand(tensor)):
            yield place, found


def operand(tensor: torch.Tensor) -> Operand | None:
    """The numbers of ``tensor``, if they are few and real, and are there at all."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or torch._C._functorch.is_functorch_wrapped_tensor(
        tensor
    ):
        return None
    if tensor.is_meta or tensor.layout is not torch.strided or tensor.is_complex() or tensor.numel() > LARGEST:
        return None
    tensor = tensor.detach()
    numbers = tuple(map(float, tensor.flatten().tolist()))
    return Operand(tuple(tensor.shape), numbers, tensor.untyped_storage().data_ptr())
