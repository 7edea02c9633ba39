"""``read`` finds the nodes and edges that autograd recorded: each node once, each input and output by its number."""

from __future__ import annotations

import pytest
import torch
from shorthand import card, edges, graph_of, label, labels

from drawgrad.read import GraphError, read_graph


def test_shape_dtype_and_value():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    s = x.sum()
    one = s.reshape(1)
    graph = graph_of("one", x=x, s=s, one=one)

    assert [(label(card), card.shape, card.dtype, card.value) for card in graph.cards] == [
        ("x", (2, 3), "float64", None),
        ("s", (), "float64", 6.0),
        ("one", (1,), "float64", None),
    ]


def test_an_input_that_needs_no_gradient_is_a_constant():
    x, c = torch.tensor(3.0, requires_grad=True), torch.tensor(4.0)
    graph = graph_of("y", x=x, c=c, y=c * x)

    assert [card.kind for card in graph.cards] == ["leaf", "constant", "function"]
    assert edges(graph) == {("constant", "y", 0, 0), ("x", "y", 1, 0)}


def test_a_ladder_of_diamonds_is_read_once_a_node():
    y = x = torch.tensor(1.0, requires_grad=True)
    for _rung in range(40):  # 2**40 paths
        y = y.sin() * y.cos()
    graph = graph_of("y", x=x, y=y)
    assert len(graph.cards) == 1 + 3 * 40
    assert len(graph.edges) == 4 * 40


def test_the_outputs_of_unbind():
    x = torch.arange(3.0, requires_grad=True)
    a, b, c = x.unbind()
    z = c * a
    graph = graph_of("z", c=c, b=b, a=a, x=x, z=z)

    assert edges(graph) == {("x", "a, b, c", 0, 0), ("a, b, c", "z", 0, 2), ("a, b, c", "z", 1, 0)}
    unbind = card(graph, "a, b, c")
    assert (unbind.operation, unbind.shape, unbind.value) == ("UnbindBackward0", None, None)


def test_a_leaf_may_be_the_root():
    x = torch.tensor(2.0, requires_grad=True)
    x.sin().backward()
    graph = graph_of("x", x=x)

    (leaf,) = graph.cards
    assert (leaf.kind, leaf.names, leaf.is_root, leaf.value) == ("leaf", ("x",), True, 2.0)
    assert leaf.gradient == pytest.approx(-0.4161468)
    assert graph.edges == ()


def test_accumulate_grad_is_drawn_when_asked_for():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward()
    graph = graph_of("y", x=x, y=y, accumulate=True)

    assert [card.kind for card in graph.cards] == ["leaf", "accumulate", "function"]
    into = {("AccumulateGrad", "y", 0, 0), ("AccumulateGrad", "y", 1, 0)}
    assert edges(graph) == {("x", "AccumulateGrad", 0, 0)} | into
    assert card(graph, "x").gradient == 6.0


# --- views and in-place operations ---------------------------------------------------------------


def test_an_in_place_operation_takes_the_name_to_its_own_node():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    y.add_(1)
    graph = graph_of("y", x=x, y=y)
    assert (card(graph, "y").operation, card(graph, "y").value) == ("AddBackward0", 7.0)
    assert ("MulBackward0", "y", 0, 0) in edges(graph)


def test_a_view_that_is_out_of_date_does_not_stop_the_reading():
    x = torch.ones(2, requires_grad=True)
    base = x * 1
    first, second = base.unbind()
    base.mul_(2)  # from here on, asking first for its grad_fn raises
    graph = graph_of("y", x=x, base=base, first=first, parts=[first, second], y=base.sum())
    assert [name for name in labels(graph) if name in ("x", "base", "y")] == ["x", "base", "y"]


# --- kinds of tensors ----------------------------------------------------------------------------


def test_complex_tensors():
    z = torch.tensor(1 + 2j, requires_grad=True)
    square = z * z.conj()
    r = square.real
    r.backward()
    graph = graph_of("r", z=z, square=square, r=r)

    found = {name: (card(graph, name).dtype, card(graph, name).value) for name in ("z", "square", "r")}
    assert found == {"z": ("complex64", 1 + 2j), "square": ("complex64", 5 + 0j), "r": ("float32", 5.0)}
    assert (card(graph, "z").gradient, card(graph, "z").terms) == (2 + 4j, ())
    assert {edge.derivative for edge in graph.edges} == {None}


@pytest.mark.parametrize("shape", [(), (3,)])
def test_meta_tensors_have_shapes_and_no_values(shape):
    x = torch.zeros(shape, device="meta", requires_grad=True)
    graph = graph_of("y", x=x, y=x.clone())
    assert [(label(card), card.shape, card.value) for card in graph.cards] == [("x", shape, None), ("y", shape, None)]
    assert {edge.derivative for edge in graph.edges} == {None}


def test_a_sparse_gradient_has_a_shape():
    table = torch.nn.Embedding(5, 2, sparse=True)
    y = table(torch.tensor([1])).sum()
    y.backward()
    weight = card(graph_of("y", table=table, y=y), "table.weight")
    assert table.weight.grad.is_sparse
    assert (weight.gradient, weight.gradient_shape) == (None, (5, 2))


# --- what nodes keep -----------------------------------------------------------------------------


def test_saved_tensors():
    a, b = torch.ones(3, 4, requires_grad=True), torch.ones(4, 2, requires_grad=True)
    product = a @ b
    graph = graph_of("total", a=a, b=b, product=product, total=product.sum())
    assert card(graph, "product").saved == ("mat2 (4×2)", "self (3×4)")
    assert card(graph, "total").saved == ()


@pytest.mark.parametrize(
    "operation",
    [torch.exp, torch.square, lambda x: x * x, lambda x: x * 2, lambda x: x @ x, lambda x: x[torch.tensor([0])]],
    ids=["a result", "an input", "two inputs", "one of two", "a product", "a list"],
)
def test_a_node_whose_buffers_backward_freed_says_so(operation):
    x = torch.ones(3, requires_grad=True)
    y = operation(x)
    before = card(graph_of("y", x=x, y=y), "y").saved
    y.sum().backward()
    graph = graph_of("y", x=x, y=y)

    assert before and "freed" not in before
    assert card(graph, "y").saved == ("freed",)
    assert ("x", "y", 0, 0) in edges(graph)


# --- what cannot be read -------------------------------------------------------------------------


def test_a_root_that_is_no_tensor():
    with pytest.raises(GraphError, match=r"^'net' is a Linear, not a tensor$"):
        read_graph({"net": torch.nn.Linear(1, 1)}, {})


@pytest.mark.parametrize("tensor", [torch.ones(2), torch.tensor([1, 2]), torch.ones(2, requires_grad=True).detach()])
def test_a_tensor_without_a_graph(tensor):
    with pytest.raises(GraphError, match=r"^'t' has no graph: it does not require a gradient"):
        read_graph({"t": tensor}, {"t": tensor})
