"""Modules fold to one card each, and open again: on real models, whose graphs stay graphs."""

from __future__ import annotations

import pytest
import torch
from shorthand import card, check, edges, graph_of, labels
from torch import nn

from drawgrad.drawing import draw_graph
from drawgrad.model import Graph
from drawgrad.modules import find_modules, fold_modules, open_module
from drawgrad.play import play_graph


def boxes_of(model: nn.Module, inputs: torch.Tensor, **facts: bool) -> tuple[Graph, dict[str, frozenset[int]]]:
    """The graph of a loss and its boxes; whatever is folded or opened is a graph that can be drawn and played."""
    graph = graph_of("loss", model=model, loss=model(inputs).sum(), **facts)
    modules = find_modules(graph)
    for small in [fold_modules(graph, modules, depth) for depth in range(4)] + [
        open_module(graph, modules, path) for path in modules
    ]:
        check(small)
        assert draw_graph(small) and play_graph(small)
    return graph, modules


class Called(nn.ModuleDict):
    """Calls its modules in the order of ``order``."""

    def __init__(self, order: str, **modules: nn.Module) -> None:
        super().__init__(modules)
        self.order = order

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.order:
            x = self[name](x).tanh()
        return x


def block() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3, bias=False))


@pytest.mark.parametrize("accumulate", [False, True])
def test_two_blocks_are_two_boxes(accumulate):
    graph, modules = boxes_of(nn.Sequential(block(), block()), torch.ones(2, 3), accumulate=accumulate)
    assert list(modules) == ["model", "model.0", "model.1"]  # one layer is no box
    assert labels(fold_modules(graph, modules, 0)) == ["model", "loss"]
    small = fold_modules(graph, modules, 1)
    assert edges(small) == {("model.0", "model.1", 0, 0), ("model.1", "loss", 0, 0)}
    assert card(small, "model.0").operation == "5 nodes, 21 parameters"
    assert fold_modules(graph, modules, 2).cards == graph.cards
    assert labels(open_module(graph, modules, "model.1"))[0] == "model.0"
    kinds = [one.kind for one in open_module(graph, modules, "model.1").cards]
    assert kinds[0] == kinds[-1] == "outside" and kinds.count("leaf") == 3


@pytest.mark.parametrize(("order", "found"), [("ab", "ab"), ("aab", "ab"), ("aba", "b"), ("abab", ""), ("ba", "ba")])
def test_a_box_has_no_parameter_of_another(order, found):
    _, modules = boxes_of(Called(order, a=block(), b=block()), torch.ones(2, 3))
    assert [path for path in modules if path != "model"] == [f"model.{name}" for name in found]


def test_a_weight_that_is_used_elsewhere_stays_outside():
    model, x = nn.Sequential(block(), block()), torch.ones(2, 3)
    loss = model(x).sum() + sum(weight.pow(2).sum() for weight in model.parameters())  # not of the layers' boxes
    graph = graph_of("loss", model=model, loss=loss)
    small = fold_modules(graph, find_modules(graph), 1)
    assert {("model.0.2.weight", "model.0", 1, 0), ("model.0", "model.1", 2, 0)} <= edges(small) or labels(small)


def test_weights_that_are_computed_first_are_inside():
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    graph, modules = boxes_of(Called("ab", a=normed, b=block()), torch.ones(2, 3))
    assert "model.b" in modules and all("model.a" not in label for label in labels(fold_modules(graph, modules, 0)))
