"""Local derivatives on the edges, gradients on the cards, and the sum where paths meet."""

from __future__ import annotations

import math

import pytest
import torch
from shorthand import card, derivatives, first_graph, graph_of

A, Y1, Y2 = 6.0, math.log(6), math.sin(3)
GRADIENTS = {"w": 1.0, "y1": Y2, "y2": Y1, "a": Y2 / A, "x1": 3 * Y2 / A, "x2": 2 * Y2 / A + Y1 * math.cos(3)}


@pytest.fixture
def first() -> dict[str, torch.Tensor]:
    """The variables of ``w = log(x1 · x2) · sin(x2)``, each keeping its gradient."""
    variables = first_graph()
    for name in ("a", "y1", "y2", "w"):
        variables[name].retain_grad()
    return variables


def test_gradients_after_backward(first):
    first["w"].backward()
    graph = graph_of("w", **first)
    assert {name: card(graph, name).gradient for name in first} == pytest.approx(GRADIENTS, rel=1e-6)
    assert {card.gradient_shape for card in graph.cards} == {()}


def test_derivatives_that_nobody_read_in_time_are_unknown(first):
    first["w"].backward()
    graph = graph_of("w", **first)
    assert set(derivatives(graph).values()) == {None}
    assert card(graph, "x2").terms == ()
    assert card(graph, "x2").gradient == pytest.approx(GRADIENTS["x2"])


def test_terms_that_do_not_add_up_are_left_out():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    for _time in range(2):  # the leaf adds up both calls, the paths explain one
        y.backward(retain_graph=True)
    graph = graph_of("y", x=x, y=y)
    assert (card(graph, "x").gradient, card(graph, "x").terms) == (12.0, ())


def test_terms_follow_the_gradient_that_the_root_started_from():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    y.backward(torch.tensor(10.0), retain_graph=True)
    assert card(graph_of("y", x=x, y=y), "x").terms == (30.0, 30.0)


def test_the_gradients_of_several_roots_add_up():
    x = torch.tensor(2.0, requires_grad=True)
    y, z = x * 5, x * 7
    y.backward(retain_graph=True)
    z.backward(retain_graph=True)
    assert sorted(card(graph_of("y z", x=x, y=y, z=z), "x").terms) == [5.0, 7.0]


def test_only_an_edge_between_scalars_has_a_derivative():
    x = torch.tensor(2.0, requires_grad=True)
    v = x * torch.ones(3)
    s = v.sum()
    y = s.exp()
    known = {
        edge for edge, derivative in derivatives(graph_of("y", x=x, v=v, s=s, y=y)).items() if derivative is not None
    }
    assert known == {("s", "y", 0)}


def test_derivatives_do_not_depend_on_the_settings_of_the_script():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    with torch.no_grad(), torch.device("meta"):
        assert set(derivatives(graph_of("y", x=x, y=y)).values()) == {3.0}
