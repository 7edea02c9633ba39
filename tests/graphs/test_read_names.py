"""Cards are named after the script's variables, wherever the script keeps its tensors."""

from __future__ import annotations

import pytest
import torch
from shorthand import card, graph_of, labels
from torch import nn


def scalar(value: float = 2.0) -> torch.Tensor:
    return torch.tensor(value, requires_grad=True)


def test_a_name_that_points_elsewhere_by_now_names_nothing_here():
    x = scalar()
    y = x.sin()
    z = y.exp()
    y = scalar()
    assert labels(graph_of("z", x=x, y=y, z=z)) == ["x", "SinBackward0", "z"]


def test_parameters_of_modules():
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1, bias=False))
    graph = graph_of("out", net=net, out=net(torch.ones(1, 3)))
    leaves = {card.names: card.shape for card in graph.cards if card.kind == "leaf"}
    assert leaves == {("net.0.weight",): (2, 3), ("net.0.bias",): (2,), ("net.2.weight",): (1, 2)}


BOXES = {
    "box[1]": lambda x: [0, x],
    "box[0]": lambda x: (x,),
    "box['key']": lambda x: {"key": x},
    "box[7]": lambda x: {7: x},
}


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("is_leaf", [True, False])
def test_tensors_in_containers(name, is_leaf):
    tensor = scalar() if is_leaf else scalar().sin()
    assert name in labels(graph_of("y", box=BOXES[name](tensor), y=tensor.exp()))


@pytest.mark.parametrize("box_first", [True, False])
def test_a_variable_is_a_better_name_than_a_place(box_first):
    x = scalar()
    variables = {"box": [x], "x": x} if box_first else {"x": x, "box": [x]}
    assert labels(graph_of("y", **variables, y=x.exp())) == ["x", "y"]


def test_private_variables_name_nothing():
    x = scalar()
    assert labels(graph_of("y", _x=x, y=x.exp())) == ["leaf", "y"]


def test_a_long_list_is_not_searched_to_its_end():
    xs = [scalar() for _ in range(1000)]
    graph = graph_of("y", xs=xs, y=xs[0] + xs[999])
    assert labels(graph) == ["xs[0]", "leaf", "y"]


def test_the_outputs_of_one_node_are_named_in_the_order_of_their_numbers():
    parts = torch.arange(3.0, requires_grad=True).unbind()
    graph = graph_of("total", last=parts[2], first=parts[0], total=parts[0] + parts[1] + parts[2])
    assert card(graph, "first, last").operation == "UnbindBackward0"


def test_a_leaf_that_was_frozen_since_keeps_its_name():
    x = scalar()
    y = x * x
    x.requires_grad_(False)
    assert labels(graph_of("y", x=x, y=y, same=y)) == ["x", "y, same"]
