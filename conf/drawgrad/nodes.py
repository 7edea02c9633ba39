"""What a node of autograd tells: its name, when the engine calls it, what it saved, its local derivatives.

To ask must not change what the script sees. Nothing is unpacked that a saved-tensor hook packed, and no node of a custom
Function is called: its backward may print, count or raise. Backward frees what a node saved, so what is read before is
remembered on the node itself, as plain numbers that keep no tensor alive and live exactly as long as the node does.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, NamedTuple

import torch

from .describe import format_bytes
from .rules import ELEMENTWISE

#: A tensor of more numbers is not read.
LARGEST = 128
MOST_NODES = 200
_DERIVATIVES, _OPERANDS = "atlas.local_derivatives", "atlas.operands"

#: What a node saves, by the name of the attribute: the number of its input, or -1 for its result.
_SAVED = {"self": 0, "other": 1, "exponent": 1, "result": -1}

#: The numbers that a node was called with, and what stands for one that it was not.
_CALLED_WITH = {
    "ClampBackward1": {"_saved_min": -math.inf, "_saved_max": math.inf},
    "MulBackward1": {"_saved_other": None},
    "PowBackward0": {"_saved_exponent": None},
    "PowBackward2": {"_saved_self": None},
}

#: Nodes that do something with whole tensors: ``program`` says what.
_TAKEN = ("Expand", "Mean", "Prod", "Select", "Stack", "Sum", "Unbind")
OF_TENSORS = frozenset(f"{name}Backward0" for name in _TAKEN)


def is_accumulate(node: Any) -> bool:
    return type(node).__name__ == "AccumulateGrad"


def is_custom(node: Any) -> bool:
    return isinstance(node, torch.autograd.function.BackwardCFunction)


def name_operation(node: Any) -> str:
    """The node's name without its C++ namespace; for a custom Function, the name of its class with ``Backward``."""
    return (type(node).__name__ if is_custom(node) else node.name()).rpartition("::")[2]


# -- In which order -------------------------------------------------------------------------------


class _Ready:
    """A node in the engine's queue. AccumulateGrad nodes all have the same number, and which of them goes first is decided by
    the heap alone; heapq moves its items just as ``std::priority_queue`` of the C++ library of GCC does."""

    def __init__(self, node: Any) -> None:
        self.node, self.number = node, node._sequence_nr()

    def __lt__(self, other: _Ready) -> bool:
        return self.number > other.number


def order_backward(roots: Iterable[Any], nodes: Iterable[Any]) -> list[Any]:
    """``nodes``, all that ``roots`` lead to, as one backward pass from all roots calls them.

    The engine keeps the nodes whose gradients have all arrived in a queue, and takes the one with the highest sequence number,
    which is the one that forward recorded last. AccumulateGrad nodes go before all others. See ``ReadyQueue`` and
    ``Engine::evaluate_function`` in PyTorch's ``torch/csrc/autograd/engine.cpp``.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x.exp() * x.sin()
    >>> exp, sin = (node for node, _ in y.grad_fn.next_functions)
    >>> [node.name() for node in order_backward([y.grad_fn], [exp.next_functions[0][0], exp, sin, y.grad_fn])]
    ['MulBackward0', 'SinBackward0', 'ExpBackward0', 'torch::autograd::AccumulateGrad']
    """
    missing = Counter(source for node in nodes for source, _ in node.next_functions if source is not None)
    ready: list[_Ready] = []
    for root in dict.fromkeys(roots):
        if not missing[root]:
            heappush(ready, _Ready(root))
    order = []
    while ready:
        node = heappop(ready).node
        order.append(node)
        for source, _ in node.next_functions:
            if source is not None:
                missing[source] -= 1
                if not missing[source]:
                    heappush(ready, _Ready(source))
    return order


# -- What it saved --------------------------------------------------------------------------------


def _list_saved(node: Any) -> Iterator[tuple[str, Any]]:
    """The node's saved tensors, still packed: (attribute's name, SavedTensor), or None in its place once they are freed."""
    for attribute in filter(lambda name: name.startswith("_raw_saved_"), dir(node)):
        name = attribute.removeprefix("_raw_saved_")
        try:
            saved = getattr(node, attribute)
        except RuntimeError:  # a list of saved tensors raises once it is freed
            saved = None
        if isinstance(saved, tuple):
            yield from ((f"{name}[{index}]", item) for index, item in enumerate(saved))
        else:
            yield name, saved


def _is_packed(saved: Any) -> bool:
    # A torch without this attribute cannot tell: treat the tensor as packed, and leave it alone.
    return getattr(saved, "unpack_hook", True) is not None


def describe_saved(node: Any, *, in_bytes: bool = False) -> tuple[str, ...]:
    """What the node keeps for backward: ``self (3×4)``, or ``freed``; in bytes ``self (3×4), 48 B``."""
    texts = []
    for name, saved in _list_saved(node):
        if saved is None:
            return ("freed",)
        try:
            if _is_packed(saved):
                texts.append(f"{name} (packed by a hook)")
            elif saved.data is not None:
                sizes = [saved.data.numel() * saved.data.element_size(), *dict(measure_memory(saved.data)).values()]
                size = f", {format_bytes(min(sizes))}" if in_bytes else ""  # one that is expanded has less memory
                texts.append(f"{name} ({'×'.join(map(str, saved.data.shape)) or 'scalar'}){size}")
            else:
                # raises if it is freed; else nothing was saved here
                getattr(node, f"_saved_{name.partition('[')[0]}", None)
        except RuntimeError:
            return ("freed",)
    return tuple(texts)


def measure_saved(node: Any) -> tuple[tuple[int, int], ...]:
    """The memory of what the node keeps, without what a hook packed."""
    try:
        tensors = [saved.data for _, saved in _list_saved(node) if saved is not None and not _is_packed(saved)]
    except RuntimeError:  # it is freed
        return ()
    return tuple(found for tensor in tensors if tensor is not None for found in measure_memory(tensor))


def measure_memory(tensor: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """What tells the memory of ``tensor`` from other, and its bytes; empty where it has none of its own, as a sparse one."""
    try:
        storage = tensor.untyped_storage()
        return ((storage._cdata, storage.nbytes()),)
    except (RuntimeError, ValueError):  # as of a parameter that is not initialized yet
        return ()


def measure_norm(gradient: torch.Tensor) -> float | None:
    """The norm of a gradient; None where there are no numbers to read."""
    try:
        numbers = gradient.detach().coalesce().values() if gradient.is_sparse else gradient.detach()
        wide = torch.float32 if numbers.is_mps else torch.float64  # in 32 bits squares are soon 0 or infinite
        return float(torch.linalg.vector_norm(numbers, dtype=torch.promote_types(numbers.dtype, wide)).abs())
    except (RuntimeError, TypeError):  # on the device meta, or what a compiler traces
        return None


def read_derivatives(node: Any) -> dict[int, float]:
    """What the node returns for an incoming 1, by input number. Empty unless everything about it is a real scalar."""
    remembered = node.metadata.get(_DERIVATIVES)
    if remembered is not None or not _may_be_called(node):
        return remembered or {}
    (meta,) = node._input_metadata
    try:
        with torch.no_grad():
            results = node(torch.ones((), dtype=meta.dtype, device=meta.device))
        given = enumerate(results if isinstance(results, tuple) else (results,))
        real = ((at, one) for at, one in given if isinstance(one, torch.Tensor) and not one.is_complex())
        node.metadata[_DERIVATIVES] = derivatives = {at: float(one) for at, one in real if one.dim() == 0}
    except RuntimeError:  # its saved tensors are freed, or have no numbers
        return {}
    return derivatives


def _may_be_called(node: Any) -> bool:
    if is_custom(node) or len(node._input_metadata) != 1 or name_operation(node) == "CopySlices":
        return False
    (meta,) = node._input_metadata
    if tuple(meta.shape) != () or not meta.dtype.is_floating_point or meta.device.type == "meta":
        return False
    kept = [saved for _, saved in _list_saved(node)]
    try:
        return not any(one is None or _is_packed(one) or (one.data is not None and one.data.is_meta) for one in kept)
    except RuntimeError:  # it is freed
        return False


# -- With what numbers it computed ----------------------------------------------------------------


class Operand(NamedTuple):
    """A tensor that a node saved."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...]
    #: Where its memory begins: a tensor that was detached from another shares it.
    address: int = 0


def is_known(node: Any) -> bool:
    """Whether there is a rule for what ``node`` does, and the call was one that it holds for."""
    name = type(node).__name__
    # where's condition is no input: with other leaves it may be another
    if is_custom(node) or name == "WhereBackward0" or (name not in ELEMENTWISE and name not in OF_TENSORS):
        return False
    return getattr(node, "_saved_alpha", 1) == 1  # torch.add(a, b, alpha=2) is no a + b


def read_call(node: Any) -> tuple[float, ...] | None:
    """The numbers in the call of ``node``; None if one of them is none."""
    called = _CALLED_WITH.get(type(node).__name__, {})
    given = ((getattr(node, attribute), limit) for attribute, limit in called.items())
    numbers = [limit if number is None else number for number, limit in given]
    return None if any(isinstance(number, complex) for number in numbers) else tuple(map(float, numbers))


def remember_operands(starts: Iterable[Any]) -> None:
    """Read the operands of all nodes that ``starts`` lead to, if there is a rule for each of them and they are few."""
    if torch._C._len_torch_dispatch_stack():
        return  # what is computed now is not numbers: a compiler traces, or a mode answers instead of PyTorch
    seen, queue = set(), deque(node for node in starts if node is not None)
    while queue:
        node = queue.popleft()
        if node in seen or is_accumulate(node):
            continue
        if len(seen) >= MOST_NODES or not is_known(node):
            return
        seen.add(node)
        queue.extend(source for source, _ in node.next_functions if source is not None)
    for node in seen:
        read_operands(node)


def read_operands(node: Any) -> dict[int, Operand]:
    """What ``node`` saved by the number of its input, -1 for its result: now, or as remembered before it was freed."""
    remembered = node.metadata.get(_OPERANDS)
    if remembered is None and (remembered := dict(_find_operands(node))):
        node.metadata[_OPERANDS] = remembered
    return remembered


def _find_operands(node: Any) -> Iterator[tuple[int, Operand]]:
    for name, place in _SAVED.items():
        try:
            saved = getattr(node, f"_raw_saved_{name}", None)
            tensor = None if saved is None or _is_packed(saved) else saved.data
        except RuntimeError:  # it is freed
            return
        if isinstance(tensor, torch.Tensor) and (found := read_operand(tensor)):
            yield place, found


def read_operand(tensor: torch.Tensor) -> Operand | None:
    """The numbers of ``tensor``, if they are few and real, and are there at all."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    has_few = not (tensor.is_meta or tensor.is_complex() or tensor.numel() > LARGEST)
    if not is_plain or not has_few or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    tensor = tensor.detach()
    numbers = tuple(map(float, tensor.flatten().tolist()))
    return Operand(tuple(tensor.shape), numbers, tensor.untyped_storage().data_ptr())
