r"""
Gradient checkpointing: less memory, a second forward pass
==========================================================

.. index::
   single: use_reentrant parameter should be passed explicitly
   single: activation checkpointing
   single: create_selective_checkpoint_contexts

.. in-short::

   ``y = checkpoint(block, x, use_reentrant=False)`` keeps ``x`` for backward, and not what PyTorch's operations inside
   ``block`` would save. When backward needs that, it runs ``block`` a second time. Here the peak of a training step falls from
   16 to 7 MiB, with the same gradients, for a third more work in matrix products. The second run must do what the first did:
   no cache that has grown, no other random numbers.
"""

# %%
# The problem: a training step runs out of memory
# -----------------------------------------------
# In training, layers keep tensors for backward. They pile up until the forward pass ends. Here, checkpoints drop most of
# them, and compute them again later.
#
# .. how-measured:: Eight blocks of Linear and GELU, and a meter that adds up, after each operation, the storages that exist.

import weakref

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def build():
    torch.manual_seed(0)
    parts = [nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*parts), torch.randn(4096, 64, requires_grad=True)


class Alive(TorchDispatchMode):
    """Bytes of all storages made under it; not what a kernel takes for itself."""

    def __init__(self, *existing):
        super().__init__()
        self.existing = {tensor.untyped_storage()._cdata for tensor in existing}
        self.sizes, self.history = {}, [0.0]

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.note(tensor.untyped_storage())
        self.read()
        return result

    def read(self):
        self.history.append(sum(self.sizes.values()) / 2**20)

    def note(self, storage):
        key = storage._cdata
        if key not in self.sizes and key not in self.existing:
            self.sizes[key] = storage.nbytes()
            weakref.finalize(storage, self.sizes.pop, key)


def over_time(forward, *options):
    net, x = build()
    with Alive(x, *net.parameters()) as alive:
        loss = forward(net, x, *options).sum()
        alive.read()
        end_of_forward = len(alive.history) - 1
        loss.backward()
    return alive.history, end_of_forward


def draw(plain, checkpointed):
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    for (history, end), style, color, label in (
        (plain, "--", "#64748b", "plain"),
        (checkpointed, "-", "#2563eb", "4 checkpoints"),
    ):
        ax.plot(history, style, color=color, label=label)
        ax.plot(end, history[end], "o", color=color)
    ax.set_title("Memory during one training step: 16 or 7 MiB at the peak")
    ax.set(xlabel="operations so far", ylabel="MiB", ylim=(0, 17))
    ax.legend(title="dot: forward ends")


# %%
# The network, as it is and in segments of equal length:

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def plain(net, x):
    return net(x)


def in_segments(net, x, segments):
    size = len(net) // segments
    for start in range(0, len(net), size):
        x = checkpoint(net[start : start + size], x, use_reentrant=False)
    return x


draw(over_time(plain), over_time(in_segments, 4))

# figure: Memory over the operations of one training step. The plain step rises to 16 MiB, has 15 when forward ends, and falls
#   in backward. The step with 4 checkpoints has 3 MiB when forward ends, rises to 7 in backward, and has four humps there, one
#   for each segment. It takes more operations.

# sphinx_gallery_start_ignore
_history, _end = over_time(plain)
assert round(max(_history), 1) == 16 and round(_history[_end], 1) == 15
_checked, _end = over_time(in_segments, 4)
assert round(max(_checked), 1) == 7 and round(_checked[_end], 1) == 3
assert len(_checked) > len(_history) and max(_checked[:_end]) < max(_checked[_end:])
# sphinx_gallery_end_ignore

# %%
# One result of a layer takes 1 MiB here. Weights and the batch exist anyway and are not counted; gradients are. When the plain
# forward ends, it keeps 15 results. With four checkpoints it keeps three: the inputs of the segments 2 to 4. (The input of the
# first is the batch.)

# %%
# Backward runs each segment again
# --------------------------------
# A hook on each block notes when the block starts:

net, x = build()
order = []
for number, block in enumerate(net):
    block.register_forward_pre_hook(lambda *_, number=number: order.append(number))

loss = in_segments(net, x, segments=4).sum()
print("forward: ", order)
order.clear()
loss.backward()
print("backward:", order)

# sphinx_gallery_start_ignore
assert order == [6, 7, 4, 5, 2, 3, 0, 1]
_gradients = [x.grad, *(weight.grad for weight in net.parameters())]
for _segments in (0, 1, 2, 8):
    _net, _x = build()
    (in_segments(_net, _x, _segments) if _segments else _net(_x)).sum().backward()
    _others = [_x.grad, *(weight.grad for weight in _net.parameters())]
    assert all(torch.equal(a, b) for a, b in zip(_gradients, _others, strict=True))
assert len(_gradients) == 17


class _Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.calls.append(operation)
        return operation(*args, **(kwargs or {}))


_net, _x = build()
_loss = in_segments(_net, _x, 4).sum()
with _Count() as _again:
    _loss.backward()  # repeats the 8 products, and not the last GELU of a segment
assert _again.calls.count(torch.ops.aten.addmm.default) == 8
assert _again.calls.count(torch.ops.aten.gelu.default) == 4
_runs = []
for _function in (lambda x: x * 2 + 1, torch.sin):  # the first saves nothing
    _y = checkpoint(
        lambda x, f=_function: (_runs.append(f), f(x))[1], _x, use_reentrant=False
    )
    _y.sum().backward()
assert len(_runs) == 3 and _runs[1] is _runs[2] is torch.sin
del _net, _x, _y, _loss, _others, number, block
# sphinx_gallery_end_ignore

# %%
# Backward begins with the last segment: it runs blocks 6 and 7 again from their saved input, up to the last tensor that they
# save. Then it computes their gradients and drops what they saved. Then comes the segment before. The gradients of this network
# are the same to the last bit, because the second run repeats the first.

# %%
# What people get wrong
# ---------------------
# **Leaving use_reentrant out.** PyTorch warns:

import textwrap
import warnings

first, batch = nn.Linear(3, 1), torch.ones(2, 3)  # batch: requires_grad is False

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    output = checkpoint(first, batch)

for warning in caught:
    print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", 88))
print("by default:          requires_grad =", output.requires_grad)
output = checkpoint(first, batch, use_reentrant=False)
print("use_reentrant=False: requires_grad =", output.requires_grad)

# sphinx_gallery_start_ignore
assert len(caught) == 2 and output.requires_grad
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_when = "In a future release" if TORCH >= (2, 15) else "Starting in PyTorch 2.9"
assert _when in str(caught[0].message)
assert "None of the inputs have requires_grad=True" in str(caught[1].message)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert not checkpoint(first, batch).requires_grad
    assert checkpoint(first, batch.clone().requires_grad_()).requires_grad
    assert not checkpoint(nn.Linear(1, 1), checkpoint(first, batch)).requires_grad
# sphinx_gallery_end_ignore

# %%
# The first warning announces an exception for 2.9. PyTorch 2.13 still raises none, and 2.15 says *in a future release*. Without
# the argument, ``checkpoint`` takes ``use_reentrant=True``, the older form (`pytorch#160534
# <https://github.com/pytorch/pytorch/issues/160534>`__ is open). In that form a block is trained only if one of its tensor
# arguments requires grad. A batch of data does not, so the first block is not trained, and neither is a checkpointed block
# right after it: :ref:`more on this warning <sphx_glr_gallery_errors_checkpoint_without_gradients.py>`.
#
# **One checkpoint around the whole model.** When backward begins, it runs the whole model again and keeps everything, as the
# plain step does:

for segments in (1, 4):
    history, _ = over_time(in_segments, segments)
    print(f"{segments} segment(s): peak {max(history):.0f} MiB")

# sphinx_gallery_start_ignore
assert [round(max(over_time(in_segments, n)[0])) for n in (1, 4)] == [16, 7]
# sphinx_gallery_end_ignore

# %%
# **Changing something in the block.** The block runs twice. In training, a batch norm then updates its running statistics
# twice:

for use_checkpoint in (False, True):
    norm, x = nn.BatchNorm1d(4), torch.ones(8, 4, requires_grad=True)
    y = checkpoint(norm, x, use_reentrant=False) if use_checkpoint else norm(x)
    y.sum().backward()
    print("checkpoint:", use_checkpoint, "  updates:", norm.num_batches_tracked.item())

    # sphinx_gallery_start_ignore
    assert norm.num_batches_tracked == 1 + use_checkpoint
    assert abs(norm.running_mean[0] - 0.1 - 0.09 * use_checkpoint) < 1e-6
# sphinx_gallery_end_ignore

# %%
# Leave it out of the checkpoint if that matters. By default, backward raises an error if the second run saves fewer tensors, or
# if a tensor that it needs has another shape, dtype or device. Other numbers in the same shape raise nothing: the gradient is
# wrong. Here the second run gets another shape:

from torch.utils.checkpoint import CheckpointError, set_checkpoint_debug_enabled

layer, calls = nn.Linear(3, 3), []


def changes(x):
    calls.append(x)
    return layer(x[: len(calls)])


try:
    checkpoint(changes, torch.ones(2, 3), use_reentrant=False).sum().backward()
except CheckpointError as error:
    print(textwrap.fill(str(error).splitlines()[0], 88))

# sphinx_gallery_start_ignore
_raised = []
for _debug in (False, True):
    for _around_forward in (True, False):
        calls.clear()
        _one, _other = (_debug, False) if _around_forward else (False, _debug)
        with set_checkpoint_debug_enabled(_one):
            _y = checkpoint(changes, torch.ones(2, 3), use_reentrant=False)
        try:
            with set_checkpoint_debug_enabled(_other):
                _y.sum().backward()
        except CheckpointError as _error:
            _raised.append("Operations executed during recomputation" in str(_error))
            assert _raised[-1] or "have different metadata" in str(_error)
assert _raised == [False, False, True, False]


def _two_runs(first, second, **options):
    """What backward says if the block runs first, then second."""
    turn = iter((first, second))
    x = torch.full((3,), 0.3, requires_grad=True)
    try:
        block = lambda x: next(turn)(x)  # noqa: E731
        checkpoint(block, x, use_reentrant=False, **options).sum().backward()
    except CheckpointError as error:
        return "number" if "A different number of tensors" in str(error) else "kind"
    return "right" if torch.allclose(x.grad, x.detach().cos()) else "wrong"


assert _two_runs(torch.sin, torch.sin) == "right"
assert _two_runs(torch.sin, lambda x: (2 * x).sin()) == "wrong"  # other numbers
assert _two_runs(torch.sin, torch.neg) == "number"
assert _two_runs(lambda x: x.sin().cos(), torch.cos) == "number"
assert _two_runs(torch.sin, lambda x: x[:1].sin()) == "kind"
assert _two_runs(torch.sin, lambda x: x.double().sin()) == "kind"
assert _two_runs(torch.sin, lambda x: x.to("meta").sin()) == "kind"
_two_exps = iter((2, 1))
_unneeded = lambda x: (x[: next(_two_exps)].exp(), x.sin())[1]  # noqa: E731
assert _two_runs(_unneeded, _unneeded) == "right"  # backward needs no exp
# sphinx_gallery_end_ignore

# %%
# :ref:`Causes and cures of this error <sphx_glr_gallery_errors_checkpoint_metadata.py>`. To find the operation, put ``with
# set_checkpoint_debug_enabled(True):`` around the forward pass. The error then lists the operations of both runs.

# %%
# **Turning preserve_rng_state off.** By default a checkpoint sets PyTorch's default generators back before the second run, for
# the CPU and for the device of the inputs. So a dropout drops the same units. Switched off, backward uses another mask, and
# nothing tells you:

drop = nn.Dropout()
for preserve in (True, False):
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    options = {"preserve_rng_state": preserve, "use_reentrant": False}
    y = checkpoint(lambda t: drop(t), x, **options)
    y.sum().backward()
    wrong = (y.detach() != x.grad).sum().item()
    print(f"preserve_rng_state={preserve!s:<5}  wrong gradients: {wrong} of 1000")

    # sphinx_gallery_start_ignore
    assert wrong > 400 if not preserve else wrong == 0
import random

_own = torch.Generator().manual_seed(0)
for _draw in (lambda: torch.rand((), generator=_own).item(), random.random):
    _seen = []

    def _noise(x):
        _seen.append(_draw())  # noqa: B023
        return (x * _seen[-1]).sin()  # noqa: B023

    _x = torch.ones(3, requires_grad=True)
    checkpoint(_noise, _x, use_reentrant=False).sum().backward()
    assert len(_seen) == 2 and _seen[0] != _seen[1]
# autocast: the second run uses the setting of the first, wherever backward is called
_types = []


def _typed(x):
    y = layer(x)
    _types.append(y.dtype)
    return y.sin()


for _forward in (True, False):
    with torch.autocast("cpu", torch.bfloat16, enabled=_forward):
        _y = checkpoint(_typed, torch.ones(2, 3), use_reentrant=False)
    with torch.autocast("cpu", torch.bfloat16, enabled=not _forward):
        _y.sum().backward()
assert _types == [torch.bfloat16] * 2 + [torch.float32] * 2
# under no_grad a checkpoint calls the block once and keeps nothing
_types.clear()
with torch.no_grad():
    assert checkpoint(_typed, torch.ones(2, 3), use_reentrant=False).grad_fn is None
assert len(_types) == 1
# sphinx_gallery_end_ignore

# %%
# A ``torch.Generator`` of your own is not set back, nor is Python's ``random``. Autocast is: the second run uses the setting of
# the first, even if you call ``backward()`` outside of the ``with``.

# %%
# How many checkpoints?
# ---------------------
# Few segments are long: backward holds everything that one of them saves. Many segments keep many inputs. With *s* segments of
# :math:`8 / s` blocks, and two results saved for each block:
#
# .. math::
#
#    \text{peak} = \underbrace{s - 1}_{\text{inputs}} + \underbrace{2 \cdot \frac{8}{s}}_{\text{one segment}} \quad\text{MiB}
#
# .. how-measured:: This code runs a step with 1, 2, 4 and 8 segments, and draws what is held when forward ends, and the peak.


def sweep(counts):
    kept, peak = [], []
    for segments in counts:
        history, end = over_time(in_segments, segments)
        kept.append(history[end])
        peak.append(max(history))
    return kept, peak


def draw_sweep(counts, kept, peak):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    ax.axhline(16, linestyle="--", color="#64748b", label="peak without checkpoints")
    ax.plot(counts, peak, "o-", color="#c2410c", label="peak")
    ax.plot(counts, kept, "s-", color="#2563eb", label="kept when forward ends")
    ax.set_xscale("log", base=2)
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.set(xlabel="segments", ylabel="MiB", ylim=(0, 17.5))
    ax.set_title("Neither one segment nor eight: four have the lowest peak")
    ax.legend(loc="upper center", bbox_to_anchor=(0.64, 0.92))


# %%
# Measured for the network above:

counts = [1, 2, 4, 8]
kept, peak = sweep(counts)
draw_sweep(counts, kept, peak)

# figure: MiB over the number of segments 1, 2, 4 and 8. What is kept when forward ends rises from 0 to 7. The peak falls from
#   16, which is also the peak without checkpoints, to 9 and to 7 at 4 segments, and rises again to 9 at 8.

# sphinx_gallery_start_ignore
assert (
    [round(mib) for mib in peak] == [n - 1 + 16 // n for n in counts] == [16, 9, 7, 9]
)
assert [round(mib) for mib in kept] == [n - 1 for n in counts]
assert all(abs(mib - round(mib)) < 0.1 for mib in peak + kept)
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode():
    assert sweep(counts) == (kept, peak)  # a forecast from shapes alone
# sphinx_gallery_end_ignore

# %%
# By this formula the peak is lowest at :math:`s = \sqrt{2 \cdot 8} = 4`. The numbers need no data: under
# ``FakeTensorMode`` the same code gives the same numbers, as in :ref:`a forecast of a whole step
# <sphx_glr_gallery_memory_forecast_a_training_step.py>`.

# %%
# What it costs, and how to pay less
# ----------------------------------
# For each matrix product of the forward pass, backward computes two here: one for the gradient of the input, one for that of
# the weight. A second forward pass makes four of three. Do you know which results are expensive? Then keep those.
# ``create_selective_checkpoint_contexts`` takes their operations. Here each linear layer calls ``addmm``.
#
# .. how-measured:: This code counts the floating point operations in products, as a multiple of those in one forward pass.

from torch.utils.flop_counter import FlopCounterMode


def flops(forward, *options):
    net, x = build()
    with FlopCounterMode(display=False) as counter:
        forward(net, x, *options).sum().backward()
    return counter.get_total_flops() / (8 * 2 * 4096 * 64 * 64)


# %%
# A step plain, with four checkpoints, and with four that keep the products:

from functools import partial

from torch.utils.checkpoint import create_selective_checkpoint_contexts

products = [torch.ops.aten.addmm.default]
keep_products = partial(create_selective_checkpoint_contexts, products)


def selective(net, x, segments):
    size = len(net) // segments
    options = {"use_reentrant": False, "context_fn": keep_products}
    for start in range(0, len(net), size):
        x = checkpoint(net[start : start + size], x, **options)
    return x


for way in [(plain,), (in_segments, 4), (selective, 4)]:
    peak = max(over_time(*way)[0])
    print(f"{way[0].__name__:<12} {flops(*way):.0f} x forward, peak {peak:.0f} MiB")

# sphinx_gallery_start_ignore
assert flops(plain) == flops(selective, 4) == flops(selective, 8) == 3
assert all(flops(in_segments, n) == 4 for n in (1, 2, 4, 8))
assert round(max(over_time(selective, 4)[0])) == 13
_net, _x = build()
selective(_net, _x, 4).sum().backward()
assert torch.equal(_x.grad, _gradients[0])
# A weight that two such checkpoints share, under autocast: fails in 2.13, not in 2.11.
_shared, _found = nn.Linear(4, 4), []
for _cached in (True, False):
    _y = torch.ones(2, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=_cached):
        for _ in range(2):
            _y = checkpoint(_shared, _y, use_reentrant=False, context_fn=keep_products)
    try:
        _y.float().sum().backward()
        _found.append("ran")
    except RuntimeError as _error:
        _found.append(str(_error)[:62])
_message = "aten._to_copy.default encountered during backward but not foun"
_fails = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)
assert _found == ([_message, "ran"] if _fails else ["ran", "ran"])
# sphinx_gallery_end_ignore

# %%
# Under autocast, PyTorch 2.13 can raise ``aten._to_copy.default encountered during backward but not found in storage`` if two
# selective checkpoints share a weight (`pytorch#193338 <https://github.com/pytorch/pytorch/issues/193338>`__). Here
# ``torch.autocast(..., cache_enabled=False)`` helps.

# %%
# Exercise
# --------
# The second run stops as soon as it has the last tensor that the first one saved (``set_checkpoint_early_stop(False)`` around
# the forward pass turns that off). A block of ``Linear`` and ``GELU`` saves the input of its GELU last, so the product of the
# linear layer has to be repeated. Cut the network elsewhere, so that no product is computed twice.
#
# .. solution::
#
# Let each segment begin with a GELU and end with the next linear layer. That layer saves the result of the GELU, and this is
# all that has to be computed again.


def shifted(net, x):
    layers = [layer for block in net for layer in block]
    x = layers[0](x)
    for number in range(1, len(layers) - 1, 2):
        segment = nn.Sequential(*layers[number : number + 2])
        x = checkpoint(segment, x, use_reentrant=False)
    return layers[-1](x)


history, _ = over_time(shifted)
print(f"{flops(shifted):.0f} x forward, peak {max(history):.0f} MiB")

# sphinx_gallery_start_ignore
from torch.utils.checkpoint import set_checkpoint_early_stop

assert flops(shifted) == flops(plain) and round(max(history)) == 10
with set_checkpoint_early_stop(False):
    assert flops(shifted) > flops(plain)
_runs, _last = [], nn.Linear(64, 64)
_last.register_forward_pre_hook(lambda *_: _runs.append("last"))
for _around_forward in (True, False):
    with set_checkpoint_early_stop(not _around_forward):
        _y = checkpoint(
            nn.Sequential(nn.GELU(), _last), build()[1], use_reentrant=False
        )
    with set_checkpoint_early_stop(_around_forward):
        _y.sum().backward()
assert _runs == ["last"] * 4  # the hook runs; the product after it may not
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_checkpoint_and_precision.py`, with autocast, counted and measured.
# - :ref:`sphx_glr_gallery_errors_ddp_finished_reduction.py`, for checkpoints in several processes.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__.
