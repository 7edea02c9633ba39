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
    "nn.functional.max_pool2d": [
        "input",
        "new",
        "output",
    ],  # the input, and where each maximum was, which may be returned too
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


def test_a_view_shares_memory_and_a_copy_does_not(rows: dict[str, dict[str, Any]]) -> None:
    assert {name: rows[name]["shares"] for name in ("t", "view", "expand", "clone", "reshape", "repeat")} == {
        "t": "always",
        "view": "always",
        "expand": "always",
        "clone": "never",
        "reshape": "always",
        "repeat": "never",
    }


def test_every_operator_is_probed_or_says_why_not(result: dict[str, Any], rows: dict[str, dict[str, Any]]) -> None:
    assert all(result["not_probed"].values()) and len(result["not_probed"]) < len(rows) / 20
    assert all(row["nodes"] or row["shares"] == "always" for row in rows.values())
