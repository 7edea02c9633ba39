"""The functions of JavaScript that are made of the rules give what PyTorch gives: at random, at ties, outside of domains."""

from __future__ import annotations

import itertools
import json
import math
import random

import pytest
import torch

from drawgrad.describe import format_number, format_row, format_sum
from drawgrad.rules import ELEMENTWISE, RULES, write_expression
from live_script import fill, run, written

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 25.0, -40.0, 1e-30, 1e30, math.inf, -math.inf, math.nan]
#: PyTorch's own operations: not the formulas.
_SAME_NAME = "Abs Add Cos Div Exp Log Maximum Minimum Mul Neg Reciprocal Relu Sigmoid Sin Sqrt Sub Tanh"
TORCH = {f"{name}Backward0": getattr(torch, name.lower()) for name in _SAME_NAME.split(" ")} | {
    "ClampBackward1": lambda a, n, m: a.clamp(n, m),
    "MulBackward1": lambda a, n: torch.ops.aten.mul.Scalar(a, n),
    "PowBackward0": lambda a, n: a**n,
    "PowBackward1": torch.pow,
    "PowBackward2": lambda a, n: n**a,
    "RsubBackward1": lambda a, n: n - a,
    "WhereBackward0": lambda a, b, n: torch.where(torch.tensor(n > 0), a, b),
}
CALLED_WITH = {"ClampBackward1": [(-1.0, 2.0)], "MulBackward1": [(3.0,)], "RsubBackward1": [(10.0,)]}
CALLED_WITH["PowBackward0"] = [(2,), (3,), (0,), (0.5,), (-1,), (1,), (-0.5,), (1.5,), (math.inf,), (-2,), (2.3,)]
CALLED_WITH["PowBackward2"] = [(2,), (0,), (0.5,), (-1,), (1,), (-2.5,), (math.inf,)]
CALLED_WITH["WhereBackward0"] = [(1.0,), (0.0,)]


def test_every_rule_is_compared() -> None:
    assert set(TORCH) == set(ELEMENTWISE)


@pytest.mark.parametrize("node", sorted(ELEMENTWISE))
def test_a_function_gives_what_pytorch_gives(node: str) -> None:
    choose = random.Random(0)
    some = [choose.uniform(-3, 3) for _ in range(12)]
    count = len(RULES[node]) - 1
    cases = [*itertools.product(EDGES + some[:4], repeat=count), *(choose.choices(some, k=count) for _ in range(20))]
    for numbers in CALLED_WITH.get(node, [()]):
        for given in cases:
            leaves = [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in given]
            y = TORCH[node](*leaves, *numbers)
            assert y.grad_fn.name() == node
            slope = torch.tensor(choose.choice([1.0, -2.5]), dtype=torch.float64)
            gradients = torch.autograd.grad(y, leaves, slope)
            a, b = [*map(written, given), "undefined"][:2]
            called = ",".join([a, b, *map(written, numbers)])
            f = f"rules[{json.dumps(node.removesuffix('Backward0'))}]"
            forward = f"{f}[0]({called})"
            found = run(f"[{forward}, ...{f}.slice(1).map(g => g({written(slope.item())},{forward},{called}))]")
            expected = [y.item(), *(gradient.item() for gradient in gradients)]
            near = pytest.approx(expected, rel=1e-12, abs=1e-300, nan_ok=True)
            assert list(map(float, found)) == near, (given, numbers)


def test_what_has_no_javascript_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no JavaScript for a @ b"):
        write_expression("a @ b")


def numbers() -> list[float]:
    choose = random.Random(1)
    some = [choose.uniform(-1, 1) * 10.0 ** choose.randint(-9, 9) for _ in range(300)]
    ties = [0.03125, 0.09375, -0.15625, 2.03125, 1.21875]
    whole = [float(round(one)) for one in some if abs(one) < 1e9]
    return [*EDGES, *some, *ties, *whole, 123456.0, 1e6, 0.001, 9999.99996]


def test_numbers_are_written_as_in_python() -> None:
    for number in numbers():
        found = {"values": {"0": [number]}, "moved": {}}
        texts = [fill(place, found).replace("undefined", "") for place in ("⟦v0⟧", "⟦w0⟧")]
        assert texts == [format_number(number), format_row([number])], number


def test_sums_are_written_as_in_python() -> None:
    found = {"values": {}, "moved": {"1.0": [0.047], "2.0": [-1.77375], "r5": [math.inf]}}
    assert fill("⟦u1.0,2.0⟧", found) == format_sum([0.047, -1.77375])
    assert fill("⟦s1.0,r5⟧", found) == "0.0470 + (inf) = inf"
