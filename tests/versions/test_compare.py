"""Rounding is no difference, another digit that counts is; what comes after a fault is not compared."""

from __future__ import annotations

from typing import Any

import pytest

from atlas.versions.measuring import compare


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("loss 0.33181", "loss 0.33182", True),
        ("loss 0.3318", "loss 0.3328", False),
        ("1e-9", "3e-9", True),
        ("tensor([1., 2.])", "tensor([1.,  2.])", True),
        ("step 10", "step 11", False),
        ("shape [2, 3]", "shape [3, 2]", False),
        ("AddBackward0", "AddBackward1", False),
        ("nan", "0.", False),
        ("0.5 and 1", "0.5", False),
    ],
)
def test_what_is_the_same(one: str, other: str, same: bool) -> None:
    assert compare.same(one, other) is same


def ran(*texts: str, faults: tuple[int, ...] = (), varies: tuple[int, ...] = ()) -> dict[str, Any]:
    outputs = [{"cell": cell, "text": text, "varies": cell in varies} for cell, text in enumerate(texts)]
    return {"code": "c", "outputs": outputs, "faults": [{"cell": cell, "code": "", "said": ""} for cell in faults]}


def cells(base: dict[str, Any], other: dict[str, Any]) -> list[int]:
    return [output["cell"] for output in compare.example(base, other)["differ"]]


def test_outputs_are_compared_up_to_the_first_fault() -> None:
    assert cells(ran("a", "b", "c"), ran("A", "b", "C")) == [0, 2]
    assert cells(ran("a", "b", "c"), ran("A", "B", "C", faults=(1,))) == [0]


def test_outputs_that_vary_are_not_compared() -> None:
    assert cells(ran("a", "b", varies=(0,)), ran("A", "B")) == [1]


def test_an_output_that_is_missing_differs() -> None:
    assert compare.example(ran("a", "b"), ran("a"))["differ"] == [{"cell": 1, "was": "b", "is": ""}]


def test_operators_are_compared_cell_by_cell() -> None:
    row = dict.fromkeys(compare.COLUMNS, "yes")
    base = {"code": "c", "rows": [{"name": "a", **row}, {"name": "b", **row}], "not_probed": {"d": "why"}}
    other = {"code": "c", "rows": [{"name": "a", **row, "second": "no"}], "not_probed": {}}
    found = compare.operators(base, other)
    assert found["differ"] == [{"name": "a", "column": "second", "was": "yes", "is": "no"}]
    assert found["missing"] == ["b"] and found["count"] == 1
    assert compare.operators(base, {"code": "c", "failed": "no"}) == {"code": "c", "failed": "no"}


def test_signatures_that_only_one_version_has_are_told_apart() -> None:
    found = compare.signatures({"f": "(x)", "g": "(y)", "new": "()"}, {"f": "(x)", "g": "(y, z=1)", "old": "()"})
    assert found == {"count": 2, "differ": {"g": ["(y)", "(y, z=1)"]}, "missing": ["new"], "gone": ["old"]}
