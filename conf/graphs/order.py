"""In which order autograd's engine calls the nodes of a graph, from the numbers that the run gave them.

The engine keeps the nodes whose gradients have all arrived in a queue, and takes the one with the highest sequence number,
which is the one that forward recorded last. AccumulateGrad nodes go before all others. See ``ReadyQueue`` and
``Engine::evaluate_function`` in PyTorch's ``torch/csrc/autograd/engine.cpp``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any


def engine_order(roots: Iterable[Any], nodes: Iterable[Any]) -> list[Any]:
    """``nodes``, all that ``roots`` lead to, as one backward pass from all roots calls them.

    >>> import torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x.exp() * x.sin()
    >>> exp, sin = (node for node, _ in y.grad_fn.next_functions)
    >>> [node.name() for node in engine_order([y.grad_fn], [exp.next_functions[0][0], exp, sin, y.grad_fn])]
    ['MulBackward0', 'SinBackward0', 'ExpBackward0', 'torch::autograd::AccumulateGrad']
    """
    missing = Counter(source for node in nodes for source, _ in node.next_functions if source is not None)
    ready = _Heap()
    for root in dict.fromkeys(roots):
        if not missing[root]:
            ready.push(root)
    order = []
    while ready.items:
        node = ready.pop()
        order.append(node)
        for source, _ in node.next_functions:
            if source is not None:
                missing[source] -= 1
                if not missing[source]:
                    ready.push(source)
    return order


def forward_order(nodes: Iterable[Any]) -> list[Any]:
    """``nodes`` in the order in which forward recorded them. AccumulateGrad nodes, which forward does not run, come last."""
    return sorted(nodes, key=_number)


class _Heap:
    """``std::priority_queue`` as the C++ library of GCC has it: AccumulateGrad nodes all have the same number, and which of
    them goes first is decided by the heap alone."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def push(self, node: Any) -> None:
        self.items.append(node)
        self._rise(len(self.items) - 1, node)

    def pop(self) -> Any:
        first, last = self.items[0], self.items.pop()
        size = len(self.items)
        if size:
            hole = 0
            while 2 * hole + 2 < size:
                left, right = 2 * hole + 1, 2 * hole + 2
                child = left if _number(self.items[right]) < _number(self.items[left]) else right
                self.items[hole] = self.items[child]
                hole = child
            if 2 * hole + 2 == size:
                self.items[hole] = self.items[size - 1]
                hole = size - 1
            self._rise(hole, last)
        return first

    def _rise(self, hole: int, node: Any) -> None:
        while hole and _number(self.items[(hole - 1) // 2]) < _number(node):
            self.items[hole] = self.items[(hole - 1) // 2]
            hole = (hole - 1) // 2
        self.items[hole] = node


def _number(node: Any) -> int:
    return node._sequence_nr()
