"""Modules fold to one card each, and open again: on real models, whose graphs stay graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from shorthand import card, check, edges, graph_of, label, labels
from torch import nn

from drawgrad.drawing import draw_graph
from drawgrad.model import Graph
from drawgrad.modules import find_modules, fold_modules, open_module


def boxes_of(model: nn.Module, inputs: torch.Tensor, **facts: bool) -> tuple[Graph, dict[str, frozenset[int]]]:
    """The graph of a loss and its boxes; whatever is folded or opened is a graph that can be drawn."""
    graph = graph_of("loss", model=model, loss=model(inputs).sum(), **facts)
    modules = find_modules(graph)
    opened = [open_module(graph, modules, path) for path in modules]
    for small in [*opened, *(fold_modules(graph, modules, depth) for depth in range(4))]:
        check(small)
        assert draw_graph(small)
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
    assert edges(fold_modules(graph, modules, 1)) == {("model.0", "model.1", 0, 0), ("model.1", "loss", 0, 0)}
    assert card(fold_modules(graph, modules, 1), "model.0").operation == "5 nodes, 21 parameters"
    assert fold_modules(graph, modules, 2).cards == graph.cards
    inside = open_module(graph, modules, "model.1")
    assert [label(one) for one in inside.cards if one.kind == "outside"] == ["model.0", "loss"]
    assert [label(one) for one in inside.cards if one.kind == "leaf"] == ["0.weight", "0.bias", "2.weight"]


@pytest.mark.parametrize(("order", "found"), [("ab", "ab"), ("aab", "ab"), ("aba", "b"), ("abab", ""), ("ba", "ba")])
def test_a_box_has_no_parameter_of_another(order, found):
    _, modules = boxes_of(Called(order, a=block(), b=block()), torch.ones(2, 3))
    assert [path for path in modules if path != "model"] == [f"model.{name}" for name in found]


def test_a_weight_that_is_used_elsewhere_stays_outside():
    model, x = nn.Sequential(block(), block()), torch.ones(2, 3)
    loss = model(x).sum() + model[0][2].weight.pow(2).sum()  # a norm is the loss's, not the module's
    graph = graph_of("loss", model=model, loss=loss)
    shared, found = "model.0.2.weight", edges(fold_modules(graph, find_modules(graph), 1))
    assert {(shared, "model.0", 0, 0), (shared, "PowBackward0", 0, 0), ("model.0", "model.1", 0, 0)} <= found


def test_weights_that_are_computed_first_are_inside():
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    graph, modules = boxes_of(nn.Sequential(nn.Sequential(normed, nn.Linear(3, 3)), block()), torch.ones(2, 3))
    assert labels(fold_modules(graph, modules, 1)) == ["model.0", "model.1", "loss"]


def test_one_line_leads_from_a_module_in_a_loop_to_their_sum():
    model = block()
    graph = graph_of("loss", model=model, loss=torch.stack([model(torch.ones(2, 3)) for _ in range(3)]).sum())
    assert len(fold_modules(graph, find_modules(graph), 0).edges) == 2


def test_what_threads_recorded_has_no_boxes():
    graph, modules = boxes_of(block(), torch.ones(2, 3))
    turned = [replace(one, recorded_as=-one.recorded_as) if one.recorded_as else one for one in graph.cards]
    assert modules and not find_modules(replace(graph, cards=tuple(turned)))
