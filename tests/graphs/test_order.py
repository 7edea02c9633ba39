"""The order that is computed from sequence numbers is the one in which the engine calls the nodes, seen by hooks."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from drawgrad.nodes import order_backward

ONE = (torch.sin, torch.exp, torch.neg, torch.square)
TWO = (torch.add, torch.mul, torch.sub)


def a_graph(seed: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Leaves and all results of twelve random operations, with branches, that meet again or do not."""
    choose = random.Random(seed)
    leaves = [torch.tensor(0.1 * number, requires_grad=True) for number in range(1, 4)]
    tensors = list(leaves)
    for _ in range(12):
        inputs = choose.sample(tensors, 2)
        tensors.append(choose.choice(TWO)(*inputs) if choose.random() < 0.6 else choose.choice(ONE)(inputs[0]))
    return leaves, tensors[3:]


def all_nodes(roots: list[Any]) -> list[Any]:
    found, waiting = set(roots), list(roots)
    while waiting:
        for source, _ in waiting.pop().next_functions:
            if source is not None and source not in found:
                found.add(source)
                waiting.append(source)
    return list(found)


def called(roots: list[torch.Tensor], nodes: list[Any]) -> list[Any]:
    """The nodes as one backward pass calls them."""
    order: list[Any] = []
    hooks = [node.register_prehook(lambda _gradients, node=node: order.append(node)) for node in nodes]
    torch.autograd.backward(roots)
    for hook in hooks:
        hook.remove()
    return order


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("chosen", [[-1], [-1, 4, 8]], ids=["one root", "several roots"])
def test_the_engine_does_as_computed(seed: int, chosen: list[int]) -> None:
    _, results = a_graph(seed)
    roots = [results[place] for place in chosen]
    nodes = all_nodes([root.grad_fn for root in roots])
    assert order_backward([root.grad_fn for root in roots], nodes) == called(roots, nodes)
