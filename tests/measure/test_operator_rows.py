"""Rows of the table of operators, against code that does not use the probe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from sources import ROOT

#: What each keeps for backward, from the formula of its derivative.
KEEPS = {
    "exp": ["output"],  # exp' = exp
    "tanh": ["output"],  # 1 - tanh²
    "sigmoid": ["output"],  # s (1 - s)
    "sqrt": ["output"],  # 1 / (2 sqrt)
    "nn.functional.relu": ["output"],  # where the output is positive
    "softmax": ["output"],
    "log": ["input"],  # 1 / x
    "sin": ["input"],  # cos x
    "mul": ["input"],  # the other factor
    "mm": ["input"],
    "nn.functional.silu": ["input"],
    "nn.functional.gelu": ["input"],
    "add": [],  # 1
    "sub": [],
    "sum": [],
    "t": [],
    "view": [],
    "clone": [],
    "neg": [],
    "cumsum": [],
    "nn.functional.max_pool2d": ["input", "output", "new"],  # and where each maximum was, which may be returned too
}

Change = Callable[[torch.Tensor], Any]


def x(*shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    return (torch.rand(*shape, dtype=torch.float64) + 0.5).requires_grad_()


#: Operators with one input, and what backward does after the result, and after the input, was changed.
IN_PLACE: dict[str, tuple[Change, str, str]] = {
    "exp": (torch.exp, "raises", "works"),
    "log": (torch.log, "works", "raises"),
    "sin": (torch.sin, "works", "raises"),
    "cos": (torch.cos, "works", "raises"),
    "sqrt": (torch.sqrt, "raises", "works"),
    "tanh": (torch.tanh, "raises", "works"),
    "sigmoid": (torch.sigmoid, "raises", "works"),
    "reciprocal": (torch.reciprocal, "raises", "works"),
    "rsqrt": (torch.rsqrt, "raises", "works"),
    "nn.functional.relu": (F.relu, "raises", "works"),
    "nn.functional.silu": (F.silu, "works", "raises"),
    "nn.functional.gelu": (F.gelu, "works", "raises"),
    "square": (torch.square, "works", "raises"),
    "neg": (torch.neg, "works", "works"),
    "clone": (torch.clone, "works", "works"),
    "t": (torch.t, "works", "works"),
    "flip": (lambda a: a.flip(0), "works", "works"),
    "cumsum": (lambda a: a.cumsum(0), "works", "works"),
    "tril": (torch.tril, "works", "works"),
    "log_softmax": (lambda a: a.log_softmax(0), "raises", "works"),
}


@pytest.fixture(scope="session")
def result(site: Path) -> dict[str, Any]:
    """The result that the built page shows."""
    return json.loads((ROOT / "docs" / "reference" / "data" / "operators.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def rows(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The operators that were probed, by name."""
    return {row["name"]: row for row in result["rows"]}


@pytest.mark.parametrize("name", KEEPS)
def test_keeps_what_its_formula_needs(rows: dict[str, dict[str, Any]], name: str) -> None:
    assert rows[name]["saves"] == KEEPS[name]


def outcome(function: Change, *, of_result: bool) -> str:
    leaf = x(3, 3)
    given = leaf.clone()
    result = function(given)
    (expected,) = torch.autograd.grad(function(leaf).sum(), leaf)
    (result if of_result else given).add_(1)
    try:
        result.sum().backward()
    except RuntimeError:
        return "raises"
    return "works" if torch.allclose(leaf.grad, expected) else "wrong"


@pytest.mark.parametrize("name", IN_PLACE)
def test_change_in_place(rows: dict[str, dict[str, Any]], name: str) -> None:
    function, result, given = IN_PLACE[name]
    assert (outcome(function, of_result=True), outcome(function, of_result=False)) == (result, given)
    assert (rows[name]["output_changed"], rows[name]["input_changed"]) == (result, given)


def shares(function: Change, given: torch.Tensor) -> bool:
    return function(given).untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


#: Whether a call with an input as it comes, and one with a transposed input, return memory of the input.
SHARES: dict[str, tuple[Change, str, bool, bool]] = {
    "t": (torch.t, "always", True, True),
    "expand": (lambda a: a.expand(2, *a.shape), "always", True, True),
    "clone": (torch.clone, "never", False, False),
    "repeat": (lambda a: a.repeat(1, 1), "never", False, False),
    "reshape": (lambda a: a.reshape(-1), "sometimes", True, False),
    "flatten": (torch.flatten, "sometimes", True, False),
    "ravel": (torch.ravel, "sometimes", True, False),
    "contiguous": (torch.Tensor.contiguous, "sometimes", True, False),
    "reshape_as": (lambda a: a.reshape_as(torch.empty(6)), "sometimes", True, False),
    "double": (torch.Tensor.double, "sometimes", True, True),
    "float": (torch.Tensor.float, "sometimes", False, False),
    "sum_to_size": (lambda a: a.sum_to_size(*a.shape), "sometimes", True, True),
    "einsum": (lambda a: torch.einsum("ij->ji", a), "sometimes", True, True),
}


@pytest.mark.parametrize("name", SHARES)
def test_shares_memory(rows: dict[str, dict[str, Any]], name: str) -> None:
    function, said, as_it_comes, transposed = SHARES[name]
    assert (shares(function, x(2, 3)), shares(function, x(3, 2).T)) == (as_it_comes, transposed)
    assert rows[name]["shares"] == said
    if as_it_comes != transposed:
        assert "transposed" in rows[name]["notes"]["shares"] or "contiguous" in rows[name]["notes"]["shares"]


#: Of the inputs that are kept the name: for someone short of memory it matters that it is not the data.
KEPT_INPUT = {
    "index_select": ["index"],
    "masked_fill": ["mask"],
    "where": ["condition"],
    "nn.functional.embedding": ["idx"],
    "mm": ["input", "mat2"],
}


@pytest.mark.parametrize("name", KEPT_INPUT)
def test_names_the_input_that_is_kept(rows: dict[str, dict[str, Any]], name: str) -> None:
    assert rows[name]["inputs"] == KEPT_INPUT[name]


@pytest.mark.parametrize(
    "name", ["nn.functional.relu", "abs", "nn.functional.max_pool2d", "nn.functional.l1_loss", "cumsum"]
)
def test_a_second_derivative_that_is_zero(rows: dict[str, dict[str, Any]], name: str) -> None:
    assert rows[name]["second"] == "zero"


def test_attention_has_no_second_derivative_with_four_dimensions(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["nn.functional.scaled_dot_product_attention"]
    q = x(1, 1, 2, 2)
    (slope,) = torch.autograd.grad(F.scaled_dot_product_attention(q, q, q).sin().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="flash_attention_for_cpu_backward is not implemented"):
        torch.autograd.grad(slope.sum(), q)
    assert (row["second"], row["forward"]) == ("no", "no")
    assert "4 dimensions" in row["notes"]["second"] and "4 dimensions" in row["notes"]["forward"]
    assert "ScaledDotProductFlashAttentionForCpuBackward0" in row["nodes"]


def test_of_cross_entropy_only_a_target_of_probabilities_must_not_change(rows: dict[str, dict[str, Any]]) -> None:
    scores, target = x(3, 3), x(3, 3).detach()
    assert outcome(lambda a: F.cross_entropy(a, target), of_result=False) == "works"
    assert outcome(lambda a: F.cross_entropy(scores, a), of_result=False) == "raises"
    assert rows["nn.functional.cross_entropy"]["notes"]["input_changed"].startswith("if `target` is changed")


def test_forward_mode_that_is_silently_wrong(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["scatter_reduce (prod)"]["forward"] == "wrong"


def test_differences_are_taken_in_double_precision(rows: dict[str, dict[str, Any]]) -> None:
    """The database has weights of ``cov`` in float32, whose rounding a difference would measure."""
    assert rows["cov"]["second"] == "yes" and rows["cov"]["error"] < 1e-6


def test_no_name_is_that_of_a_lambda(rows: dict[str, dict[str, Any]]) -> None:
    assert not [row["name"] for row in rows.values() if "<" in row["in_place"]]
    assert rows["nn.functional.hardtanh"]["in_place"] == "hardtanh_"
    assert rows["nn.functional.silu"]["in_place"] == "inplace=True"


def test_every_operator_is_probed_or_says_why_not(result: dict[str, Any], rows: dict[str, dict[str, Any]]) -> None:
    assert all(result["not_probed"].values()) and len(result["not_probed"]) < len(rows) / 20
    assert all(row["nodes"] or row["shares"] == "always" for row in rows.values())
