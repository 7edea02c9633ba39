"""Cards are named after the script's variables, wherever the script keeps its tensors."""

from __future__ import annotations

import pytest
import torch
from shorthand import card, graph_of, labels
from torch import nn

from graphs.read import read_graph


def scalar(value: float = 2.0) -> torch.Tensor:
    return torch.tensor(value, requires_grad=True)


def test_two_variables_for_one_tensor_both_name_it():
    x = scalar()
    y = x.sin()
    assert labels(graph_of("y", x=x, same=x, y=y, loss=y)) == ["x, same", "y, loss"]


def test_equal_tensors_are_not_mixed_up():
    a, b = scalar(), scalar()
    graph = graph_of("y", a=a, b=b, y=a.sin() * b.cos())
    assert labels(graph) == ["a", "SinBackward0", "b", "CosBackward0", "y"]


def test_the_root_is_named_by_what_was_asked_for():
    x = scalar()
    y = x.sin()
    graph = read_graph({"y": y}, {"x": x})
    assert labels(graph) == ["x", "y"]


def test_a_tensor_that_no_variable_names():
    assert labels(graph_of("y", y=scalar().sin().exp())) == ["leaf", "SinBackward0", "y"]


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


@pytest.mark.parametrize(
    ("container", "name"),
    [
        (lambda x: [0, x], "box[1]"),
        (lambda x: (x,), "box[0]"),
        (lambda x: {"key": x}, "box['key']"),
        (lambda x: {7: x}, "box[7]"),
    ],
)
@pytest.mark.parametrize("is_leaf", [True, False])
def test_tensors_in_containers(container, name, is_leaf):
    x = scalar()
    tensor = x if is_leaf else x.sin()
    graph = graph_of("y", box=container(tensor), y=tensor.exp())
    assert name in labels(graph)


@pytest.mark.parametrize("box_first", [True, False])
def test_a_variable_is_a_better_name_than_a_place(box_first):
    x = scalar()
    variables = {"box": [x], "x": x} if box_first else {"x": x, "box": [x]}
    assert labels(graph_of("y", **variables, y=x.exp())) == ["x", "y"]


def test_only_the_first_place_names_a_tensor():
    x = scalar()
    assert labels(graph_of("y", steps=[x, x], last={"x": x}, y=x.exp())) == ["steps[0]", "y"]


def test_private_variables_name_nothing():
    x = scalar()
    assert labels(graph_of("y", _x=x, y=x.exp())) == ["leaf", "y"]


def test_a_long_list_is_not_searched_to_its_end():
    xs = [scalar() for _ in range(1000)]
    graph = graph_of("y", xs=xs, y=xs[0] + xs[999])
    assert labels(graph) == ["xs[0]", "leaf", "y"]


def test_variables_of_other_kinds_are_passed_over():
    x = scalar()
    clutter = {"n": 3, "nothing": None, "text": "x", "module": torch, "kind": nn.Linear, "i": torch.tensor([1])}
    assert labels(graph_of("y", **clutter, x=x, y=x.exp())) == ["x", "y"]


def test_the_outputs_of_one_node_are_named_in_the_order_of_their_numbers():
    parts = torch.arange(3.0, requires_grad=True).unbind()
    graph = graph_of("total", last=parts[2], first=parts[0], total=parts[0] + parts[1] + parts[2])
    assert card(graph, "first, last").operation == "UnbindBackward0"


def test_a_leaf_that_was_frozen_since_keeps_its_name():
    x = scalar()
    y = x * x
    x.requires_grad_(False)
    assert labels(graph_of("y", x=x, y=y)) == ["x", "y"]


def test_the_attributes_of_a_custom_function_are_its_own_business():
    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.name, ctx.variable = "a note", "another"
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x = scalar()
    y = Noted.apply(x)
    graph = graph_of("y", x=x, y=y)
    assert (card(graph, "y").kind, card(graph, "y").operation) == ("function", "NotedBackward")


def test_a_name_has_no_c_plus_plus_namespace():
    b = torch.zeros(2)
    b[0] = scalar()
    assert b.grad_fn.name() == "torch::autograd::CopySlices"
    assert card(graph_of("b", b=b), "b").operation == "CopySlices"
