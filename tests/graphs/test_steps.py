"""The play of a graph: each thing once, in the order in which it happened, with the numbers that the run gave."""

from __future__ import annotations

import math

import pytest
import torch
from shorthand import card, first_graph, graph_of, label

from drawgrad.model import Graph
from drawgrad.play import Step, play_graph


def scalar(value: float) -> torch.Tensor:
    return torch.tensor(value, requires_grad=True)


@pytest.fixture
def first() -> dict[str, torch.Tensor]:
    return first_graph()


def told(graph: Graph, step: Step) -> str:
    names = {card.key: label(card) for card in graph.cards}
    tails = [names[graph.edges[number].tail] for number in step.edges]
    return " ".join([step.kind, *(names[key] for key in step.cards), *(["<-", *tails] if tails else [])])


def test_the_order_of_forward_and_backward(first: dict[str, torch.Tensor]) -> None:
    graph = graph_of("w", **first)
    assert [told(graph, step) for step in play_graph(graph)] == [
        "leaves x1 x2",
        "compute a <- x1 x2",
        "compute y1 <- a",
        "compute y2 <- x2",
        "compute w <- y1 y2",
        "start w",
        "send w <- y1 y2",
        "send y2 <- x2",  # recorded after y1, so called before it
        "send y1 <- a",
        "send a <- x1 x2",
        "keep x1",
        "keep x2",
    ]


def test_two_paths_are_added_where_they_meet(first: dict[str, torch.Tensor]) -> None:
    graph_of("w", **first)  # the nodes' derivatives are read while they can be
    first["w"].backward()
    graph = graph_of("w", **first)
    *_, keep_x2 = play_graph(graph)
    ((over_sin, over_log),) = keep_x2.arrived
    assert card(graph, "x2").terms == pytest.approx((over_sin, over_log)), "one order, on the card and in the play"
    assert over_sin == pytest.approx(math.log(6) * math.cos(3), rel=1e-5)
    assert over_log == pytest.approx(math.sin(3) / 3, rel=1e-5)
    assert over_sin + over_log == pytest.approx(first["x2"].grad.item()) == pytest.approx(-1.7267885)


def test_numbers_that_do_not_make_the_gradient_are_not_said(first: dict[str, torch.Tensor]) -> None:
    graph_of("w", **first)
    first["y1"].register_hook(lambda gradient: 2 * gradient)
    first["w"].backward()
    play = play_graph(graph_of("w", **first))
    assert [told(graph_of("w", **first), step) for step in play[-2:]] == ["keep x1", "keep x2"]
    assert all(part is None for step in play for parts in step.arrived for part in parts)


def test_tensors_have_no_numbers() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    play = play_graph(graph_of("y", x=x, y=y))
    assert [step.kind for step in play] == ["leaves", "compute", "compute", "start", "send", "send", "keep"]
    assert play[3].arrived == ((1.0,),) and play[-1].arrived == ((None, None),)


def test_accumulate_grad_with_a_card_of_its_own() -> None:
    x = scalar(2.0)
    y = x.exp()
    graph = graph_of("y", accumulate=True, x=x, y=y)
    assert [told(graph, step) for step in play_graph(graph)] == [
        "leaves x AccumulateGrad",
        "compute y <- AccumulateGrad",
        "start y",
        "send y <- AccumulateGrad",
        "keep x <- x",
    ]
    assert play_graph(graph)[-1].arrived[0] == (pytest.approx(7.389056),)
