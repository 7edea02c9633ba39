"""A graph has a program if the program gives what the script has, and none if it does not."""

from __future__ import annotations

import pytest
import torch
from shorthand import graph_of

from drawgrad.nodes import remember_operands


def leaf(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers[0] if len(numbers) == 1 else numbers, requires_grad=True)


@pytest.mark.parametrize("reads", [False, True])
def test_constants_are_read_before_backward_frees_them(reads) -> None:
    w = leaf(3.0)
    loss = (w * 2 - 1) ** 2
    if reads:
        remember_operands([loss.grad_fn])
    loss.backward()
    assert bool(graph_of("loss", w=w, loss=loss).program) == reads


def test_a_constant_that_no_node_saves_follows_from_the_result() -> None:
    w = leaf(0.5)
    y = 10 - (w + 0.3)
    z = y * y
    program = graph_of("z", w=w, y=y, z=z, s=y.grad_fn.next_functions[0][0]).program
    assert program is None, "two unknown numbers in one result"
    shifted = w + 0.3
    program = graph_of("shifted", w=w, shifted=shifted).program
    assert [one.numbers for one in program.instructions.values() if one.operation == "constant"] == [(0.3,)]


def test_several_outputs() -> None:
    x = leaf(2.0, 5.0, 9.0)
    first, _middle, last = x.unbind()
    y = first * last
    assert graph_of("y", x=x, first=first, last=last, y=y).program


def changed_leaf() -> dict[str, torch.Tensor]:
    w = leaf(3.0)
    y = w**2
    with torch.no_grad():
        w += 1
    return {"w": w, "y": y}


def added_up() -> dict[str, torch.Tensor]:
    w = leaf(3.0)
    (w * 5).backward()
    y = w**2
    remember_operands([y.grad_fn])
    y.backward()
    return {"w": w, "y": y}


def detached() -> dict[str, torch.Tensor]:
    w = leaf(3.0)
    e = w.exp()
    return {"w": w, "e": e, "y": e * e.detach()}


@pytest.mark.parametrize("script", [changed_leaf, added_up, detached], ids=lambda one: one.__name__)
def test_there_is_none(script) -> None:
    assert graph_of("y", **script()).program is None


def test_there_is_none_without_a_rule_or_of_many_numbers() -> None:
    w, many = leaf(3.0, 2.0), torch.ones(200, requires_grad=True)
    assert graph_of("y", w=w, y=w.cumsum(0)).program is None
    assert graph_of("y", many=many, y=(many * many).sum()).program is None
