r"""
Gradient checkpointing: less memory, a second forward pass
==========================================================

A checkpointed part of a network keeps its input only. What its nodes would have saved is computed a second time when
backward arrives there. This page measures what that saves and what it costs, predicts both numbers without running
anything, and finds out how many segments are best.
"""

# %%
# What a checkpointed block keeps
# -------------------------------
# Eight blocks of ``Linear`` and ``GELU``. Each linear layer saves its input and its weight, each GELU its input. A
# call of ``checkpoint`` with a part of the network and its input keeps that input only.

import textwrap
import time
import warnings
import weakref
from contextlib import nullcontext
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

# sphinx_gallery_start_ignore
threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)  # one thread, which makes times steadier


def build(width=256, rows=1024):
    torch.manual_seed(0)
    parts = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*parts), torch.randn(rows, width, requires_grad=True)


def in_segments(net, x, segments):
    size = len(net) // segments
    for start in range(0, len(net), size):
        x = checkpoint(net[start : start + size], x, use_reentrant=False)
    return x


# %%
# ``step`` runs forward and backward. Meanwhile ``saved_tensors_hooks`` notes the size of each storage that is saved.
# ``_cdata`` tells whether two storages are the same, for fake tensors too.


def run(net, x, segments):
    return in_segments(net, x, segments) if segments else net(x)


def step(forward, net, x, *options):
    sizes = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()
        return tensor.detach()

    with saved_tensors_hooks(note, lambda tensor: tensor):
        output = forward(net, x, *options)
    output.sum().backward()
    return sum(sizes.values())


# %%
# Under ``FakeTensorMode`` the same code runs with shapes and no data, as on the page
# :ref:`before <sphx_glr_gallery_memory_memory_by_mode.py>`, and the bytes come out as a prediction.

gradients = {}
for segments in (0, 8):
    net, x = build()
    saved = step(run, net, x, segments)
    gradients[segments] = [x.grad, *(weight.grad for weight in net.parameters())]
    with FakeTensorMode():
        predicted = step(run, *build(), segments)
    print(f"{segments} segments: {saved:>10,} bytes saved, predicted {predicted:>10,}")
    assert saved == predicted

pairs = list(zip(gradients[0], gradients[8], strict=True))
print("gradients equal to the last bit:", all(torch.equal(a, b) for a, b in pairs))

# sphinx_gallery_start_ignore
_unit, _weight = 1024 * 256 * 4, 256 * 256 * 4
assert step(run, *build(), 0) == 16 * _unit + 8 * _weight == 18_874_368
assert saved == 8 * _unit == 8_388_608
assert all(torch.equal(a, b) for a, b in pairs) and len(pairs) == 17
# sphinx_gallery_end_ignore

# %%
# 0 stands for no checkpointing. 18.9 MB are 16 tensors of 1.05 MB and the eight weights. 8.4 MB are the inputs of the
# eight blocks: the batch and seven results. The gradients are the same, because the second computation repeats the
# first.

# %%
# Backward runs the blocks again
# ------------------------------
# A hook on each block notes when it starts. The network is cut into four segments of two blocks.

net, x = build()
order = []
for number, block in enumerate(net):
    block.register_forward_pre_hook(lambda *_, number=number: order.append(number))

output = in_segments(net, x, 4)
forward = order.copy()
order.clear()
output.sum().backward()

print("in the forward pass:", forward)
print("in backward:        ", order)
assert forward == list(range(8)) and order == [6, 7, 4, 5, 2, 3, 0, 1]
del number, block, output

# %%
# Backward starts at the last segment, computes it again from its input and differentiates it. Then comes the segment
# before.

# %%
# What it costs
# -------------
# For each product of the forward pass, backward computes two: one for the gradient of the input, one for that of the
# weight. Checkpointing adds one more. Three become four.


def flops(segments):
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        step(run, *build(), segments)
    return counter.get_total_flops()


once, twice = flops(segments=0), flops(segments=8)
print(f"plain:      {once:,} floating point operations in products")
print(f"8 segments: {twice:,}")
assert twice * 3 == once * 4

# %%
# By that count a step takes a third longer. How much it really is depends on what else takes time. The two are
# measured in turn, and the fastest run of each counts, because a busy machine slows both.

# varies: The times depend on the machine and its load, and so does their ratio.


def seconds(segments):
    net, x = build()
    start = time.perf_counter()
    step(run, net, x, segments)
    return time.perf_counter() - start


pairs = [(seconds(0), seconds(8)) for _ in range(3)]
best_plain, best_small = (min(times) for times in zip(*pairs, strict=True))
print(f"one step with checkpointing takes {best_small / best_plain:.2f} times as long")

# sphinx_gallery_start_ignore
assert 0.3 < best_small / best_plain < 10
# sphinx_gallery_end_ignore

# %%
# How many segments?
# ------------------
# A backward pass needs more than the saved inputs: while a segment is worked on, all its tensors are there. ``Alive``
# sees each operation, notes the storages of the results, and forgets them when they are freed. Gradients are among
# them; what an operation allocates inside itself is not.


class Alive(TorchDispatchMode):
    def __init__(self, *existing):
        super().__init__()
        self.existing = {tensor.untyped_storage()._cdata for tensor in existing}
        self.sizes, self.peak = {}, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.note(tensor.untyped_storage())
        self.peak = max(self.peak, sum(self.sizes.values()))
        return result

    def note(self, storage):
        key = storage._cdata
        if key not in self.sizes and key not in self.existing:
            self.sizes[key] = storage.nbytes()
            weakref.finalize(storage, self.sizes.pop, key)


# %%
# The same eight blocks, cut into 1 to 8 segments, but narrower, so that weights hardly count. The peak leaves out
# weights and batch, which exist anyway.


def measure(segments, fake=False):
    with FakeTensorMode() if fake else nullcontext():
        net, x = build(width=64)
        with Alive(x, *net.parameters()) as alive:
            saved = step(run, net, x, segments)
        return saved, alive.peak


counts = [0, 1, 2, 4, 8]
measured = [measure(segments) for segments in counts]
predicted = [measure(segments, fake=True) for segments in counts]
assert measured == predicted

columns = ["saved", "peak of the step"]
table = pd.DataFrame(measured, index=counts, columns=columns)
table[[f"{column}, predicted" for column in columns]] = predicted
# sphinx_gallery_start_ignore
_result = 1024 * 64 * 4
assert list(table["saved"] / _result) == [16.5, 1, 2, 4, 8]
_peaks = table["peak of the step"] / _result
assert abs(_peaks[0] - 17) < 0.3
assert all(abs(_peaks[n] - n - 16 / n) < 0.3 for n in counts[1:])
# sphinx_gallery_end_ignore
table.map("{:,}".format).rename_axis(columns="segments")

# %%
# One result of a layer has 1024 · 64 numbers, or 262,144 bytes. With *s* segments, *s* tensors of this size are
# saved. The peak adds what one segment of :math:`8 / s` blocks saves, two results for each block:
#
# .. math::
#
#    \text{peak} \approx s + 2 \cdot \frac{8}{s} \quad\text{results}
#
# One large segment saves nothing at the peak. Many small ones keep many inputs. The minimum lies between, at the
# square root of :math:`2 \cdot 8`.

# figure: Megabytes over the number of segments 1, 2, 4 and 8. What is saved rises from 0.3 to 2.1. The peak of the
#   step falls from 4.5 to 2.1 at 4 segments, and rises again to 2.6 at 8. A dashed line at 4.5 is the peak without
#   checkpointing. The predictions lie on the measured points.
_, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
mb = table / 1e6
places = range(len(counts) - 1)
styles = {"saved": ("s-", "#2563eb"), "peak of the step": ("o-", "#c2410c")}
for column, (style, colour) in styles.items():
    ax.plot(places, mb[column][1:], style, color=colour, markersize=9, label=column)
    ax.plot(places, mb[column + ", predicted"][1:], ".", color="white")
ax.axhline(mb["peak of the step"][0], linestyle="--", color="#64748b")
ax.annotate("peak without checkpointing", (3, 4.4), ha="right", va="top")
ax.set_xticks(places, counts[1:])
ax.set(xlabel="segments", ylabel="MB", ylim=(0, 5))
ax.set_title("Too few segments or too many: the peak is lowest between")
ax.legend(loc="lower right", title="white dots: predicted")

peaks = table["peak of the step"]
share = peaks.min() / peaks[0]
print(f"lowest peak: {peaks.idxmin()} segments, {share:.0%} of that without")

# sphinx_gallery_start_ignore
assert peaks.idxmin() == 4 and round(share, 2) == 0.48
# sphinx_gallery_end_ignore

# %%
# Keep some, compute the rest again
# ---------------------------------
# ``create_selective_checkpoint_contexts`` takes the operations whose results are to be kept. Here these are the
# products, so none is computed twice: the count is that of a step without checkpointing.

products = [torch.ops.aten.addmm.default]  # what a linear layer calls
contexts = partial(create_selective_checkpoint_contexts, products)


def selective(net, x):
    for block in net:
        x = checkpoint(block, x, use_reentrant=False, context_fn=contexts)
    return x


with FlopCounterMode(display=False) as counter:
    net, x = build()
    selective(net, x).sum().backward()
print(f"{counter.get_total_flops():,} operations in products, plain: {once:,}")
assert counter.get_total_flops() == once
assert torch.equal(x.grad, gradients[0][0])

# %%
# What people get wrong
# ---------------------
# **Leaving use_reentrant out.** The older implementation is still the default. It differs in much, and in one thing
# badly: if no input of the block requires a gradient, the block's weights get none. That is the case of the first
# block of a network.

block, batch = nn.Linear(3, 1), torch.ones(2, 3)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    output = checkpoint(block, batch)

for warning in caught:
    sentence = str(warning.message).split(". ")[0]
    print(textwrap.fill(f"{warning.category.__name__}: {sentence}.", 88))
print("default:             requires_grad =", output.requires_grad)
output = checkpoint(block, batch, use_reentrant=False)
print("use_reentrant=False: requires_grad =", output.requires_grad)

# sphinx_gallery_start_ignore
assert len(caught) == 2
assert "use_reentrant parameter should be passed explicitly" in str(caught[0].message)
assert "None of the inputs have requires_grad=True" in str(caught[1].message)
assert output.requires_grad
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert not checkpoint(block, batch).requires_grad
# sphinx_gallery_end_ignore

# %%
# In a larger network there is no error: the rest trains, and this block stays as it is. Pass ``use_reentrant=False``
# every time.

# %%
# **State that changes in the forward pass.** What runs twice counts twice. A batch norm updates its running
# statistics in the second computation too. Leave it out of the segments if that matters.

for checkpointed in (False, True):
    norm = nn.BatchNorm1d(4)
    x = torch.ones(8, 4, requires_grad=True)
    h = checkpoint(norm, x, use_reentrant=False) if checkpointed else norm(x)
    h.sum().backward()
    mean, updates = norm.running_mean[0].item(), norm.num_batches_tracked.item()
    print(f"checkpoint: {checkpointed!s:<5} updates: {updates}   mean: {mean:.2f}")
    assert updates == 1 + checkpointed and abs(mean - 0.1 - 0.09 * checkpointed) < 1e-6

# %%
# **Turning preserve_rng_state off where there is dropout.** By default the state of the random generator is saved
# and set back, so both computations drop the same units. Without it the gradient belongs to a different mask, and
# nothing tells.

drop = nn.Dropout()
for preserve in (True, False):
    torch.manual_seed(0)
    x = torch.ones(8, requires_grad=True)
    option = {"preserve_rng_state": preserve, "use_reentrant": False}
    y = checkpoint(lambda t: drop(t), x, **option)
    y.sum().backward()
    same = torch.equal(y.detach(), x.grad)
    print(
        f"preserve_rng_state={preserve!s:<5} gradient and output have one mask: {same}"
    )
    assert same == preserve

# %%
# Exercise
# --------
# Recomputing stops as soon as the last saved tensor is there. A block of ``Linear`` and ``GELU`` saves the input of
# its GELU last, so the product of the linear layer has to be repeated. Cut the network elsewhere, so that memory is
# saved and no product is computed twice.
#
# .. solution::
#
# Begin each segment with a GELU and end it with the linear layer that follows. The linear layer saves its input,
# which is the result of the GELU, and that is all that has to be computed again.


def shifted(net, x):
    layers = [layer for block in net for layer in block]
    x = layers[0](x)
    for number in range(1, len(layers) - 1, 2):
        segment = nn.Sequential(*layers[number : number + 2])
        x = checkpoint(segment, x, use_reentrant=False)
    return layers[-1](x)


with FakeTensorMode(), FlopCounterMode(display=False) as counter:
    saved = step(shifted, *build())

print(f"{counter.get_total_flops():,} operations, as without checkpointing")
print(f"{saved:,} bytes saved")
assert counter.get_total_flops() == once
assert saved == step(shifted, *build())

# sphinx_gallery_start_ignore
assert saved == 9 * _unit + _weight == 9_699_328
torch.set_num_threads(threads)
# sphinx_gallery_end_ignore

# %%
# What is saved are eight inputs of a GELU, and what the first layer needs, which stands outside: the batch and its
# weight.

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_memory_memory_by_mode.py`, what train, eval, no_grad and freezing keep.
# - Next: :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`, other things to do with a saved tensor.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, why GELU saves its input.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__.
