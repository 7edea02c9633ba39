"""Reading changes nothing that the script could see: no hook runs, nothing is unpacked, nothing is kept alive."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest
import torch
from shorthand import card, graph_of, labels
from torch.autograd.graph import saved_tensors_hooks


class Untouchable(torch.autograd.Function):
    """Doubles; its backward must not run."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise AssertionError("reading called the backward of a custom Function")


class UntouchableInPlace(Untouchable):
    """Doubles its argument in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)


def test_a_custom_function_is_not_called_by_way_of_copy_slices():
    x = torch.tensor(2.0, requires_grad=True)
    base = x * 1
    UntouchableInPlace.apply(base.view(()))
    assert card(graph_of("base", x=x, base=base), "base").operation == "CopySlices"


OPERATIONS = {
    "by a node": lambda x: x * x,
    "in a list": lambda x: x.reshape(1)[torch.tensor([0])].sum(),
    "by a custom function": Untouchable.apply,
    "behind CopySlices": lambda x: _write_into(torch.tensor(5.0), x),
}


def _write_into(base, x):
    base.view(()).mul_(x)
    return base


@pytest.mark.parametrize("saved", OPERATIONS)
def test_what_a_hook_packed_stays_packed(saved):
    packed, unpacked = [], []
    x = torch.tensor(3.0, requires_grad=True)
    with saved_tensors_hooks(lambda tensor: packed.append(1) or tensor, lambda tensor: unpacked.append(1) or tensor):
        y = OPERATIONS[saved](x)
    graph = graph_of("y", x=x, y=y)

    assert packed and not unpacked
    texts = [text for card in graph.cards for text in card.saved]
    assert all(text.endswith("(packed by a hook)") for text in texts)
    assert texts or saved == "behind CopySlices"


def test_no_hook_runs():
    ran = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    z = y.sin()
    x.register_hook(lambda grad: ran.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda tensor: ran.append("accumulated"))
    y.register_hook(lambda grad: ran.append("tensor"))
    z.grad_fn.register_prehook(lambda grads: ran.append("before node"))
    z.grad_fn.register_hook(lambda inputs, outputs: ran.append("after node"))

    graph_of("z", x=x, y=y, z=z)
    assert ran == []
    z.backward()
    assert sorted(ran) == ["accumulated", "after node", "before node", "leaf", "tensor"]


def test_no_gradient_appears_and_none_changes():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    graph_of("y", x=x, y=y)
    assert x.grad is None and y.grad is None
    y.backward()
    kept, version = x.grad, x.grad._version
    graph_of("y", x=x, y=y)
    assert (x.grad is kept, kept.item(), kept._version) == (True, 4.0, version)


@pytest.mark.parametrize("accumulate", [False, True])
def test_reading_does_not_warn(accumulate):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x  # has no .grad: asking for it warns
    z = y.sin()
    z.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph_of("z", x=x, y=y, z=z, accumulate=accumulate)
        with pytest.raises(UserWarning, match="not a leaf"):
            y.grad  # noqa: B018


def test_backward_gives_the_same_gradients_after_a_reading():
    def gradients(*, is_read: bool) -> list[float]:
        x, base = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0)
        base.view(()).mul_(x)
        y = (base * x).exp().log() / x.sqrt()
        if is_read:
            graph_of("y", x=x, y=y)
        y.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()
        return [x.grad.item(), x._version, y._version]

    assert gradients(is_read=True) == gradients(is_read=False)


class Probe:
    """Hung on a node, it dies when the node does."""


@pytest.mark.parametrize("operation", [torch.sin, Untouchable.apply], ids=["C++ node", "custom Function"])
def test_reading_keeps_no_graph_alive(operation):
    x = torch.tensor(2.0, requires_grad=True)
    middle = operation(x)
    y = middle * 2
    probe = Probe()
    middle.grad_fn.metadata["probe"] = probe
    alive = [weakref.ref(probe), weakref.ref(middle), weakref.ref(y)]
    graph = graph_of("y", x=x, middle=middle, y=y)

    gc.disable()  # a cycle that only the collector finds would hold the graph's memory for a while
    try:
        del probe, middle, y
        assert [reference() for reference in alive] == [None, None, None]
    finally:
        gc.enable()
    assert labels(graph)[0] == "x"


def test_the_state_of_the_generator_stays():
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.nn.functional.dropout(x.exp(), 0.5)
    before = torch.get_rng_state()
    graph_of("y", x=x, y=y)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled()
