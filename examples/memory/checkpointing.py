r"""
Gradient checkpointing: less memory, a second forward pass
==========================================================

.. index::
   single: use_reentrant parameter should be passed explicitly
   single: activation checkpointing

.. in-short::

   ``y = checkpoint(block, x, use_reentrant=False)`` saves only ``x``, instead of everything that the operations inside
   ``block`` would save. Backward runs ``block`` again to get the rest. On this page the peak of a training step falls from 16
   to 9 MiB, or to 7 with a checkpoint for every two blocks. The gradients stay the same, for a third more work in matrix
   products. But the second run must repeat the first, with the same weights and the same random numbers.
"""

# %%
# The problem: a training step runs out of memory
# -----------------------------------------------
# In training, layers keep tensors for backward, and these pile up until the forward pass ends. A checkpoint around each block
# drops most of them, and computes them again in backward. In the loop over the blocks, one line changes:

import textwrap
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop


def build():
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(8)]
    # the batch requires grad, as if it came from another layer
    return nn.Sequential(*blocks), torch.randn(4096, 64, requires_grad=True)


def plain(net, x):
    for block in net:
        x = block(x)
    return x


def checkpointed(net, x):
    for block in net:
        x = checkpoint(block, x, use_reentrant=False)
    return x


for forward in (plain, checkpointed):
    net, x = build()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (forward(net, x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{forward.__name__:<12} loss {losses[0]:.6f} ... {losses[-1]:.6f}")

    # sphinx_gallery_start_ignore
    if forward is plain:
        _losses = losses
assert losses == _losses and losses[-1] < 0.8 * losses[0]
from torch.autograd.graph import saved_tensors_hooks


def _measure_kept_mib(forward, *options):
    net, batch = build()
    sizes = {}

    def pack(tensor):
        sizes[tensor.data_ptr()] = tensor.nbytes / 2**20
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        forward(net, batch, *options)
    for tensor in (batch, *net.parameters()):  # these exist anyway
        sizes.pop(tensor.data_ptr(), None)
    return sum(sizes.values())


assert [_measure_kept_mib(plain), _measure_kept_mib(checkpointed)] == [15, 7]
del net, x, optimizer, loss
# sphinx_gallery_end_ignore

# %%
# Both train alike. What differs is the memory:
#
# .. how-measured:: A meter adds up the storages that exist after each operation, gradients too, but not weights and batch.

import weakref

import matplotlib.pyplot as plt
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


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


def trace_memory(forward, *options):
    net, x = build()
    with Alive(x, *net.parameters()) as alive:
        loss = forward(net, x, *options).sum()
        alive.read()
        end_of_forward = len(alive.history) - 1
        loss.backward()
    return alive.history, end_of_forward


def plot_memory_over_time(plain, checkpointed):
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    for (history, end), style, color, label in (
        (plain, "--", "#64748b", "plain"),
        (checkpointed, "-", "#2563eb", "8 checkpoints"),
    ):
        ax.plot(history, style, color=color, label=label)
        ax.plot(end, history[end], "o", color=color)
    ax.set_title("Memory during one training step: 16 or 9 MiB at the peak")
    ax.set(xlabel="operations so far", ylabel="MiB", ylim=(0, 17))
    ax.legend(title="dot: forward ends")


# %%
# Memory over the forward and backward pass of one step, without and with checkpoints:

plot_memory_over_time(trace_memory(plain), trace_memory(checkpointed))

# figure: Memory over the operations of one training step. The plain step rises to 16 MiB, has 15 when forward ends, and falls
#   in backward. The step with 8 checkpoints has 7 MiB when forward ends, rises to 9 in backward, and falls in steps, one for
#   each block. It takes more operations.

# sphinx_gallery_start_ignore
_history, _end = trace_memory(plain)
assert round(max(_history), 1) == 16 and round(_history[_end], 1) == 15
_checked, _end = trace_memory(checkpointed)
assert round(max(_checked), 1) == 9 and round(_checked[_end], 1) == 7
assert len(_checked) > len(_history) and max(_checked[:_end]) < max(_checked[_end:])
# sphinx_gallery_end_ignore

# %%
# One result of a layer takes 1 MiB. The plain network keeps 15 of them. With checkpoints it keeps seven, the inputs of blocks 2
# to 8. (The input of the first is the batch.) In backward, each block needs a little more for a while.

# %%
# Backward runs each block again
# ------------------------------
# A hook on each block notes when the block starts:

net, x = build()
order = []
for number, block in enumerate(net):
    block.register_forward_pre_hook(lambda *_, number=number: order.append(number))

loss = checkpointed(net, x).sum()
print("forward: ", order)
order.clear()
loss.backward()
print("backward:", order)

# sphinx_gallery_start_ignore
assert order == [7, 6, 5, 4, 3, 2, 1, 0]
_gradients = [x.grad, *(weight.grad for weight in net.parameters())]
del number, block
# sphinx_gallery_end_ignore

# %%
# Backward begins with the last block. It runs it again from its saved input, computes its gradients, and goes on to the block
# before. The gradients on this page are the same to the last bit, because the second run repeats the first. It repeats the
# random numbers of a dropout, too.
#
# Three ways to switch it on:
#
# - In a model's ``forward``, write ``x = checkpoint(block, x, use_reentrant=False)`` where it says ``x = block(x)``.
# - For an ``nn.Sequential``, call ``torch.utils.checkpoint.checkpoint_sequential(net, 4, x, use_reentrant=False)``. It leaves
#   the last of the four segments without a checkpoint.
# - For a Hugging Face model, call
#   ``model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})`` before training.

# %%
# How many checkpoints?
# ---------------------
# You can put several blocks into one checkpoint, a *segment*:


def in_segments(net, x, segments):
    size = len(net) // segments
    for start in range(0, len(net), size):
        x = checkpoint(net[start : start + size], x, use_reentrant=False)
    return x


# sphinx_gallery_start_ignore
from functools import partial

from torch.utils.checkpoint import checkpoint_sequential
from torch.utils.flop_counter import FlopCounterMode

for _segments in (0, 1, 2, 4, 8):
    _net, _x = build()
    (in_segments(_net, _x, _segments) if _segments else _net(_x)).sum().backward()
    _others = [_x.grad, *(weight.grad for weight in _net.parameters())]
    assert all(torch.equal(a, b) for a, b in zip(_gradients, _others, strict=True))
assert len(_gradients) == 17
_net, _x = build()
_loss = in_segments(_net, _x, 4).sum()
with FlopCounterMode(display=False) as _again:
    _loss.backward()
assert _again.get_total_flops() == 3 * 8 * 2 * 4096 * 64 * 64
_sequential = partial(checkpoint_sequential, use_reentrant=False)
_kept = _measure_kept_mib(lambda net, x: _sequential(net, 4, x))
assert _kept == 3 + 3  # the inputs of segments 2 to 4, and more of the last
del _net, _x, _loss, _others
# sphinx_gallery_end_ignore

# %%
# Few segments are long, and backward holds everything that one of them saves. Many segments keep many inputs. In *s* segments,
# each has :math:`8 / s` blocks, and a block saves two results:
#
# .. math::
#
#    \text{peak} = \underbrace{s - 1}_{\text{inputs}} + \underbrace{2 \cdot \frac{8}{s}}_{\text{one segment}} \quad\text{MiB}
#
# .. how-measured:: This code runs a step with 1, 2, 4 and 8 segments, and draws what is held when forward ends, and the peak.


def measure_kept_and_peak(counts):
    kept, peak = [], []
    for segments in counts:
        history, end = trace_memory(in_segments, segments)
        kept.append(history[end])
        peak.append(max(history))
    return kept, peak


def plot_kept_and_peak(counts, kept, peak):
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
kept, peak = measure_kept_and_peak(counts)
plot_kept_and_peak(counts, kept, peak)

# figure: MiB over the number of segments 1, 2, 4 and 8. What is kept when forward ends rises from 0 to 7. The peak falls from
#   16, which is also the peak without checkpoints, to 9 and to 7 at 4 segments, and rises again to 9 at 8.

# sphinx_gallery_start_ignore
assert (
    [round(mib) for mib in peak] == [n - 1 + 16 // n for n in counts] == [16, 9, 7, 9]
)
assert [round(mib) for mib in kept] == [n - 1 for n in counts]
assert all(abs(mib - round(mib)) < 0.1 for mib in peak + kept)
# sphinx_gallery_end_ignore

# %%
# By this formula the peak is lowest at :math:`s = \sqrt{2 \cdot 8} = 4`.

# %%
# What it costs, and how to pay less
# ----------------------------------
# For each matrix product of the forward pass, backward computes two: one for the gradient of the input, one for that of the
# weight. So a second forward pass turns three products into four. :ref:`A selective checkpoint
# <sphx_glr_gallery_memory_selective_checkpointing.py>` keeps the results of the operators that you list.
#
# .. how-measured:: This code counts the floating point operations in products, as a multiple of those in one forward pass.

from torch.utils.flop_counter import FlopCounterMode


def count_flops(forward, *options):
    net, x = build()
    with FlopCounterMode(display=False) as counter:
        forward(net, x, *options).sum().backward()
    return counter.get_total_flops() / (8 * 2 * 4096 * 64 * 64)


# %%
# A step plain, and in four segments:

for way in [(plain,), (in_segments, 4)]:
    peak = max(trace_memory(*way)[0])
    print(
        f"{way[0].__name__:<12} {count_flops(*way):.0f} x forward, peak {peak:.0f} MiB"
    )

# sphinx_gallery_start_ignore
assert count_flops(plain) == 3
assert all(count_flops(in_segments, n) == 4 for n in (1, 2, 4, 8))
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Leaving use_reentrant out.** PyTorch warns:

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
# Without the argument, ``checkpoint`` takes the older form, ``use_reentrant=True``. It trains a block only if one of its tensor
# arguments requires grad. A batch of data does not, so the first block stays untrained: :ref:`more on this warning
# <sphx_glr_gallery_errors_checkpoint_without_gradients.py>`.
#
# **A lambda in a loop.** A lambda looks its names up when it runs. In backward the loop is over, so ``block`` is the last block
# in each lambda. If the shapes fit, the gradients are silently wrong:

torch.manual_seed(0)
blocks = [nn.Linear(4, 4) for _ in range(3)]


def gradient_of_the_first(use_checkpoint, bind):
    x = torch.ones(1, 4)
    for block in blocks:
        step = lambda t: t + block(t)
        if bind:
            step = lambda t, block=block: t + block(t)
        x = checkpoint(step, x, use_reentrant=False) if use_checkpoint else step(x)
    return torch.autograd.grad(x.square().sum(), blocks[0].weight)[0][0, 0].item()


print(f"no checkpoint:     {gradient_of_the_first(False, bind=False):.2f}")
print(f"lambda in a loop:  {gradient_of_the_first(True, bind=False):.2f}")
print(f"name bound:        {gradient_of_the_first(True, bind=True):.2f}")

# sphinx_gallery_start_ignore
_plain = gradient_of_the_first(False, bind=False)
assert abs(gradient_of_the_first(True, bind=False) - _plain) > 0.1
assert gradient_of_the_first(True, bind=True) == _plain
# sphinx_gallery_end_ignore

# %%
# So bind the name: ``lambda t, block=block:``.
#
# **One checkpoint around the whole model.** Backward first runs the whole model again and keeps everything, so the peak is that
# of the plain step:

for segments in (1, 4):
    history, _ = trace_memory(in_segments, segments)
    print(f"{segments} segment(s): peak {max(history):.0f} MiB")

# sphinx_gallery_start_ignore
assert [round(max(trace_memory(in_segments, n)[0])) for n in (1, 4)] == [16, 7]
# sphinx_gallery_end_ignore

# %%
# **Changing something in the block.** In training, a batch norm updates its running statistics in both runs:

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
# Leave the batch norm out of the checkpoint if that matters.
#
# **A second run with different numbers.** The gradient is silently wrong if an optimizer changes the weights between forward
# and backward, as in a GAN. So it is for dropout with ``preserve_rng_state=False``, and for numbers that the block draws from
# Python's ``random`` or your own ``torch.Generator``: draw those outside. Different shapes raise :ref:`CheckpointError
# <sphx_glr_gallery_errors_checkpoint_metadata.py>`.

# sphinx_gallery_start_ignore
import random

from torch.utils.checkpoint import CheckpointError

_gradients_of_x = []
for _optimizer_steps in (False, True):
    _layer, _x = nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)
    _optimizer = torch.optim.SGD(_layer.parameters(), lr=1.0)
    _layer(_x).sum().backward()
    _x.grad = None
    _y = checkpoint(_layer, _x, use_reentrant=False).sum()
    _right = _layer.weight.detach().sum(0)
    if _optimizer_steps:
        _optimizer.step()
    _y.backward()
    _gradients_of_x.append(torch.allclose(_x.grad[0], _right))
assert _gradients_of_x == [True, False]


def _two_runs(first, second, **options):
    """Whether the gradient is right if the block runs first, then second."""
    turn = iter((first, second))
    x = torch.full((3,), 0.3, requires_grad=True)
    try:
        block = lambda x: next(turn)(x)
        checkpoint(block, x, use_reentrant=False, **options).sum().backward()
    except CheckpointError as error:
        return "number" if "A different number of tensors" in str(error) else "kind"
    return "right" if torch.allclose(x.grad, x.detach().cos()) else "wrong"


assert _two_runs(torch.sin, torch.sin) == "right"
assert _two_runs(torch.sin, lambda x: (2 * x).sin()) == "wrong"  # other numbers
assert _two_runs(torch.sin, lambda x: x[:1].sin()) == "kind"
_drop = nn.Dropout()
for _preserve in (True, False):
    _x = torch.ones(1000, requires_grad=True)
    _y = checkpoint(_drop, _x, preserve_rng_state=_preserve, use_reentrant=False)
    _y.sum().backward()
    _wrong = (_y.detach() != _x.grad).sum()
    assert _wrong == 0 if _preserve else _wrong > 400
_own = torch.Generator().manual_seed(0)
for _draw in (lambda: torch.rand((), generator=_own).item(), random.random):
    _seen = []

    def _noise(x):
        _seen.append(_draw())
        return (x * _seen[-1]).sin()

    _x = torch.ones(3, requires_grad=True)
    checkpoint(_noise, _x, use_reentrant=False).sum().backward()
    assert len(_seen) == 2 and _seen[0] != _seen[1]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# The second run stops as soon as it has the last tensor that the first one saved: in a block of ``Linear`` and ``GELU``, the
# input of the GELU. So it repeats the product of the linear layer. Cut the network elsewhere, so that no product is repeated.
#
# .. solution::
#
# Let each segment begin with a GELU and end with the next linear layer, which saves the result of the GELU. Only that has to be
# computed again.


def shifted(net, x):
    layers = [layer for block in net for layer in block]
    x = layers[0](x)
    for number in range(1, len(layers) - 1, 2):
        segment = nn.Sequential(*layers[number : number + 2])
        x = checkpoint(segment, x, use_reentrant=False)
    return layers[-1](x)


history, _ = trace_memory(shifted)
print(f"{count_flops(shifted):.0f} x forward, peak {max(history):.0f} MiB")

with set_checkpoint_early_stop(False):
    print(f"without the early stop: {count_flops(shifted):.1f} x forward")

# sphinx_gallery_start_ignore
assert count_flops(shifted) == count_flops(plain) and round(max(history)) == 10
with set_checkpoint_early_stop(False):
    assert count_flops(shifted) == 3 + 7 / 8


def _runs_of_the_end(inside, **options):
    ran = []

    def block(x):
        y = x.sin()
        ran.append(1)
        return y + 1

    x = torch.ones(3, requires_grad=True)
    with set_checkpoint_early_stop(inside != "forward"):
        y = checkpoint(block, x, use_reentrant=False, **options)
    with set_checkpoint_early_stop(inside != "backward"):
        y.sum().backward()
    return len(ran)


assert [_runs_of_the_end(_where) for _where in ("forward", "backward")] == [2, 1]
# sphinx_gallery_end_ignore

# %%
# If the end of a block has to run again, for a hook or a counter, put ``with set_checkpoint_early_stop(False):`` around the
# *forward* pass. Around ``backward()`` it does nothing.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_checkpoint_and_precision.py`, with autocast, counted and measured.
# - :ref:`sphx_glr_gallery_memory_forecast_a_training_step.py`.
# - :ref:`sphx_glr_gallery_errors_ddp_finished_reduction.py`, for checkpoints in several processes.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__, also
#   ``set_checkpoint_early_stop``.
