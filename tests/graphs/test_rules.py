"""Every rule that a figure shows is what autograd computes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from shorthand import card, graph_of

from drawgrad.play import name_rules
from drawgrad.rules import RULES

NAMES = vars(torch) | {"n": 3}
CALLED_WITH = {
    "ClampBackward1": {"n": -0.5, "m": 0.5},
    "WhereBackward0": {"condition": torch.tensor([True, False, True])},
}
CALLED_WITH["PowBackward2"] = {"log": math.log}
SHAPES = {
    "AddmmBackward0": {"a": (4,), "b": (2, 3), "c": (3, 4)},
    "DotBackward0": {"a": (3,), "b": (3,)},
    "MmBackward0": {"a": (2, 3), "b": (3, 4)},
}


def inputs(node: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    shapes = SHAPES.get(node, dict.fromkeys("abc"[: len(RULES[node]) - 1], (2, 3)))
    return {name: (torch.randn(shape, dtype=torch.float64)).requires_grad_() for name, shape in shapes.items()}


@pytest.mark.parametrize("node", sorted(RULES))
def test_a_rule_is_what_backward_computes(node: str) -> None:
    operation, *rules = RULES[node]
    given = inputs(node)
    if node in ("LogBackward0", "PowBackward1", "SqrtBackward0"):
        given = {name: tensor.detach().abs().requires_grad_() for name, tensor in given.items()}
    code = {"a + b @ c": "torch.addmm(a, b, c)", "a.view(...)": "a.view(3, 2)"}.get(operation, operation)
    code = "torch.ops.aten.mul.Scalar(a, n)" if node == "MulBackward1" else code
    names = NAMES | CALLED_WITH.get(node, {})
    y = eval(code, names | {"torch": torch} | given)
    assert y.grad_fn.name() == node
    gradient = torch.randn_like(y)
    expected = torch.autograd.grad(y, list(given.values()), gradient)
    for rule, right in zip(rules, expected, strict=True):
        found = eval(rule, names | given | {"y": y, "grad": gradient})
        torch.testing.assert_close(found, right)


def rules_for(root: str, **variables: Any) -> dict[str, str]:
    graph = graph_of(root, **variables)
    names = {one.key: one.names[0] if one.names else one.operation for one in graph.cards}
    return {names[key]: rule for key, rule in name_rules(graph, card(graph, root))}


def test_an_input_without_a_name_keeps_its_letter() -> None:
    x = torch.ones(2, requires_grad=True)
    assert rules_for("out", x=x, out=x.sin() * x) == {"SinBackward0": "grad * x", "x": "grad * a"}


def test_a_broadcast_input_gets_a_sum() -> None:
    x, shift = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    assert rules_for("out", x=x, shift=shift, out=x * shift) == {
        "x": "grad * shift",
        "shift": "(grad * x).sum_to_size(shift.shape)",
    }
