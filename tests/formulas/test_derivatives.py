"""The formulas are those that the installed PyTorch runs, and what is kept is used only for that PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from atlas.formulas import derivatives

Nodes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    return derivatives.read()


def test_a_formula_is_what_backward_computes(nodes: Nodes) -> None:
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = x.tan()
    grad = torch.tensor([3.0, 5.0], dtype=torch.float64)
    [[arguments, formula]] = nodes[y.grad_fn.name()]["backward"]
    assert arguments == ["self"]
    found = eval(formula, {"grad": grad, "self": x.detach(), "result": y.detach()})
    assert torch.equal(found, torch.autograd.grad(y, x, grad)[0])


@pytest.mark.parametrize(
    ("node", "needs"),
    [
        ("MulBackward0", ["other", "self"]),
        ("ExpBackward0", ["result"]),
        ("AddBackward0", []),
        ("CatBackward0", []),  # the shapes of tensors are none
        ("ToCopyBackward0", []),  # nor are dtype and device
        ("MaxPool2DWithIndicesBackward0", ["result1", "self"]),
    ],
)
def test_what_a_node_needs_are_tensors(nodes: Nodes, node: str, needs: list[str]) -> None:
    assert nodes[node]["saves"] == needs


def test_what_a_node_of_a_graph_saves_has_the_names_of_its_formulas(nodes: Nodes) -> None:
    a, b = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    for result in (a * b, a @ b, a.exp(), a.softmax(0), torch.addmm(a, a, b)):
        node = result.grad_fn
        saved = {name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")}
        tensors = {name for name in saved if isinstance(getattr(node, f"_saved_{name}"), torch.Tensor)}
        assert tensors == set(nodes[node.name()]["saves"]), node.name()


def test_only_what_pytorch_tests_itself_with_is_left_out(nodes: Nodes) -> None:
    assert len(nodes) > 500
    assert not [name for name in nodes if "Test" in name or name.endswith("_copy")]


def test_what_is_kept_is_of_one_pytorch(tmp_path: Path, nodes: Nodes) -> None:
    path = tmp_path / "data" / "formulas.json"
    assert derivatives.load(path) is None
    derivatives.save(path, nodes)
    assert derivatives.load(path) == nodes
    assert [file.name for file in path.parent.iterdir()] == ["formulas.json"]
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "of": {"torch": "1.0.0"}}))
    assert derivatives.load(path) is None
    path.write_text("{")
    assert derivatives.load(path) is None
