"""Rows of the table of operators, against code that does not use the probe."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from sources import ROOT

#: Operators by what they keep for backward, from the formula of the derivative.
KEEPS = {
    "output": "exp tanh sigmoid sqrt nn.functional.relu softmax",  # exp' = exp, 1 - tanh², s (1 - s), 1 / (2 sqrt)
    "input": "log sin mul mm nn.functional.silu nn.functional.gelu",  # 1 / x, cos x, the other factor
    "": "add sub sum t view clone neg cumsum",
    "input output new": "nn.functional.max_pool2d",  # and where each maximum was, which may be returned too
}

Change = Callable[[torch.Tensor], Any]


def x(*shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    return (torch.rand(*shape, dtype=torch.float64) + 0.5).requires_grad_()


#: Operators with one input, by what backward does after the result, and after the input, was changed.
IN_PLACE = {
    ("raises", "works"): "exp sqrt tanh sigmoid reciprocal rsqrt nn.functional.relu log_softmax",
    ("works", "raises"): "log sin cos square nn.functional.silu nn.functional.gelu",
    ("works", "works"): "neg clone t flip cumsum tril",
}
DIMENSION = {"flip": ((0,),), "cumsum": (0,), "log_softmax": (0,)}  # what some of them want besides


@pytest.fixture(scope="session")
def result(site: Path) -> dict[str, Any]:
    """The result that the built page shows."""
    return json.loads((ROOT / "docs" / "reference" / "data" / "operators.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def rows(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The operators that were probed, by name."""
    return {row["name"]: row for row in result["rows"]}


def name_each(groups: dict[Any, str]) -> list[tuple[str, Any]]:
    return [(name, of) for of, names in groups.items() for name in names.split()]


@pytest.mark.parametrize(("name", "kept"), name_each(KEEPS))
def test_keeps_what_its_formula_needs(rows: dict[str, dict[str, Any]], name: str, kept: str) -> None:
    assert rows[name]["saves"] == kept.split()


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


@pytest.mark.parametrize(("name", "outcomes"), name_each(IN_PLACE))
def test_change_in_place(rows: dict[str, dict[str, Any]], name: str, outcomes: tuple[str, str]) -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return attrgetter(name)(torch)(x, *DIMENSION.get(name, ()))

    assert tuple(outcome(call, of_result=of_result) for of_result in (True, False)) == outcomes
    assert (rows[name]["output_changed"], rows[name]["input_changed"]) == outcomes


def shares(function: Change, given: torch.Tensor) -> bool:
    return function(given).untyped_storage().data_ptr() == given.untyped_storage().data_ptr()


#: Whether a call with an input as it comes, and one with a transposed input, return memory of the input.
SHARES: dict[str, tuple[Change, str, bool, bool]] = {
    "t": (torch.t, "always", True, True),
    "clone": (torch.clone, "never", False, False),
    "reshape": (lambda a: a.reshape(-1), "sometimes", True, False),
    "contiguous": (torch.Tensor.contiguous, "sometimes", True, False),
    "float": (torch.Tensor.float, "sometimes", False, False),
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


def test_names_the_input_that_is_kept(rows: dict[str, dict[str, Any]]) -> None:
    assert {name: rows[name]["inputs"] for name in KEPT_INPUT} == KEPT_INPUT


def test_a_second_derivative_that_is_zero(rows: dict[str, dict[str, Any]]) -> None:
    names = ("nn.functional.relu", "abs", "nn.functional.max_pool2d", "nn.functional.l1_loss", "cumsum")
    assert {rows[name]["second"] for name in names} == {"zero"}


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
