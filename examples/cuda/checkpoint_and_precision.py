r"""
Checkpointing and bfloat16 on a GPU: memory, time, gradients
============================================================

.. in-short::

   Two switches can lower the memory of a training step. *Checkpointing* drops results and computes them again; *autocast*
   computes products in bfloat16. For the 6 transformer layers on this page, counted from shapes, checkpointing lowers the peak
   of a step from 817 to 216 MiB, and bfloat16 lowers it to 609 MiB. Both together need *more* than checkpointing alone, unless
   you call ``torch.autocast`` with ``cache_enabled=False``.
"""

# %%
# The problem: a step does not fit
# --------------------------------
# Your training step runs out of memory, and you do not want a smaller batch. You can estimate without a GPU what each switch
# saves:
#
# .. how-measured:: the model is 6 layers of attention and a feed-forward network.

# sphinx_gallery_time_limit = 500
import torch
import torch.nn.functional as F
from torch import nn

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 6, 1024, 16, 4, 512


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).view(*x.shape[:2], 3, HEADS, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def build(device):
    torch.manual_seed(0)
    with torch.device(device):
        net = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        batch = torch.randn(BATCH, LENGTH, WIDTH)
    for weight in net.parameters():
        weight.grad = torch.zeros_like(weight)
    return net, batch


# %%
# The forward pass, with both switches:

import sys

import pandas as pd
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def forward(net, x, checkpointed, lower, together=1, cache=True):
    kind = x.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=lower, cache_enabled=cache):
        for first in range(0, LAYERS, together):
            layers = net[first : first + together]
            if checkpointed:
                options = {"use_reentrant": False, "preserve_rng_state": False}
                x = checkpoint(layers, x, **options)
            else:
                x = layers(x)
    return x.float().square().mean()


ways = {
    "float32": (False, False),
    "float32, checkpoint": (True, False),
    "bfloat16": (False, True),
    "bfloat16, checkpoint": (True, True),
}

# %%
# .. how-measured:: the step runs on fake tensors, which have no data. A dispatch mode adds up the storages in use, beyond the
#    weights, a gradient for each of them, and the batch. The working memory of kernels is not seen.

import weakref

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class OnPaper(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.sizes, self.peak = {}, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.sizes:
                    self.sizes[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.sizes.pop, storage._cdata)
        self.peak = max(self.peak, self.held())
        return result

    def held(self):
        return sum(self.sizes.values())


def predict(*way):
    with FakeTensorMode(), OnPaper() as paper:
        net, batch = build("cpu")
        before, paper.peak = paper.held(), 0
        loss = forward(net, batch, *way)
        held = paper.held() - before
        loss.backward()
        return held, paper.peak - before


predicted = {name: predict(*way) for name, way in ways.items()}
on_paper = (pd.DataFrame(predicted, ["held", "peak"]).T / 2**20).round(0).astype(int)

# %%
# *Held* is what the graph keeps when forward is done. *Peak* is the most that the whole step takes.

# figure: Four horizontal pairs of bars, held and peak of a step. float32 is longest, with a peak of 817 MiB, then
#   bfloat16 with 609 MiB. The two with checkpointing peak near 220 MiB, and of these bfloat16 has the longer bar.
look = {"color": ["#94a3b8", "#2563eb"], "xlabel": "MiB", "figsize": (7, 2.8)}
title = "Four ways through one model, on paper"
ax = on_paper[::-1].plot.barh(**look, title=title)
ax.figure.tight_layout()

# sphinx_gallery_start_ignore
_held = {name: held for name, (held, _) in predicted.items()}
_inputs = LAYERS * BATCH * LENGTH * WIDTH * 4
assert abs(_held["float32, checkpoint"] / _inputs - 1) < 0.01
assert abs(_held["bfloat16, checkpoint"] / _inputs - 1) < 0.01
with FakeTensorMode(), OnPaper() as _paper:  # without square(), which saves the result
    _net, _x = build("cpu")
    _before = _paper.held()
    for _layer in _net:
        _x = checkpoint(_layer, _x, use_reentrant=False, preserve_rng_state=False)
        assert _x.dtype == torch.float32
    _loss = _x.mean()
    del _x
    assert abs((_paper.held() - _before) / (_inputs * 5 / 6) - 1) < 0.01
    del _net, _loss
assert torch.get_float32_matmul_precision() == "highest"
assert on_paper["peak"].to_list()[:3] == [817, 216, 609]
assert (
    on_paper["peak"]["bfloat16, checkpoint"] > on_paper["peak"]["float32, checkpoint"]
)
# sphinx_gallery_end_ignore

# %%
# The same numbers, in MiB:

on_paper

# %%
# The model has no dropout, so ``preserve_rng_state=False`` is safe. With dropout, leave this option out: the second forward
# pass would draw a different mask, and the gradient would be wrong without an error.
#
# The idea: one layer at a time
# -----------------------------
# Backward needs results of forward. Without checkpointing, the graph holds the results of all layers when backward begins. With
# it, the graph of this model holds 6 tensors of 8 MiB: the inputs of the layers 2 to 6, and the result of the last layer. (The
# input of the first layer is the batch, which is not counted.) They stay in float32 under autocast too. Backward then takes one
# layer at a time: it computes the results of the layer again, uses them, and frees them. So the peak is what the graph holds,
# plus the results of *one* layer, plus what its backward needs.
#
# What people get wrong
# ---------------------
# **Expecting half from bfloat16.** In this model, autocast computes the products in bfloat16, and GELU and attention get
# bfloat16 from them. The norms and the sums ``x + …`` stay in float32. And for backward, the products keep a bfloat16 copy of
# each weight. In float32 they keep the weight itself, which exists anyway.

with torch.device("meta"):
    net = nn.Sequential(*(Layer() for _ in range(LAYERS)))
linears = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
copies = sum(2 * linear.weight.numel() for linear in linears)
share = predicted["bfloat16"][0] / predicted["float32"][0]
print(f"held in bfloat16: {share:.0%} of float32")
print(f"of this, copies of weights: {copies / predicted['bfloat16'][0]:.0%}")
assert 0.7 < share < 0.8 and 0.2 < copies / predicted["bfloat16"][0] < 0.3

# %%
# **Adding bfloat16 to checkpointing and expecting less.** Autocast *caches* the copy of a weight until the outermost ``with``
# ends, in case the weight is used again. So at the end of forward, the copies of all layers are in memory, and this is the
# peak. With ``cache_enabled=False`` a checkpointed layer drops its copies when its forward ends.

without_cache = predict(True, True, 1, False)[1]
for name, peak in {
    "float32, checkpoint": predicted["float32, checkpoint"][1],
    "bfloat16, checkpoint": predicted["bfloat16, checkpoint"][1],
    "bfloat16, checkpoint, cache_enabled=False": without_cache,
}.items():
    print(f"{name:<43}{peak / 2**20:>7,.0f} MiB")
assert without_cache < predicted["float32, checkpoint"][1]

# %%
# **Reading an old peak.** ``max_memory_allocated`` is the highest value since the program began, or since the last
# ``reset_peak_memory_stats()``. So a cheap run after an expensive one seems to need as much.
#
# **Checkpointing for inference.** Under ``no_grad`` nothing is saved for backward, so there is nothing to forget.
#
# Exercise
# --------
# ``together`` puts several layers into one checkpoint, so fewer inputs are kept. Is the peak of a step lower with 1 or with 3
# layers together?
#
# .. solution::
#
# With 1. While backward works on a checkpoint, everything that its layers save is in memory, and one layer saves much more than
# the one input that is kept for it.

several = {1: predicted["float32, checkpoint"][1]}
several[3] = predict(True, False, 3)[1]
for together, peak in several.items():
    print(f"{together} together: {peak / 2**20:>7,.0f} MiB")
assert list(several.values()) == sorted(several.values())

# %%
# Measured on a GPU
# -----------------
# Shapes say nothing about time and rounding, and kernels may need extra memory. So here is each step on a GPU. The first step
# lets the libraries allocate their workspaces, and gives the gradient. The bytes of the second step are measured. Then steps
# with eight times the batch are timed, because with a small batch you could measure how fast Python starts the kernels.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()


def measure(*way):
    net, batch = build("cuda")
    forward(net, batch, *way).backward()
    gradient = net[0].qkv.weight.grad.clone()

    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    loss = forward(net, batch, *way)
    held = torch.cuda.memory_allocated() - before
    loss.backward()
    peak = torch.cuda.max_memory_allocated() - before
    del loss
    batch = batch.repeat(8, 1, 1)
    return held, peak, min(milliseconds(net, batch, way) for _ in range(4)), gradient


def milliseconds(net, batch, way):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    forward(net, batch, *way).backward()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


# %%
# The four models are built from one seed, so they have the same weights. The last column compares the gradient of one weight of
# the first layer, which backward reaches last.

# varies: Times depend on the GPU. The peak includes what its kernels take, and rounding depends on how they add up.

measured = {name: measure(*way) for name, way in ways.items()}
exact, plain = measured["float32"][3], measured["float32"][2]

rows = {}
for name, (held, peak, time, gradient) in measured.items():
    error = (gradient - exact).norm() / exact.norm()
    rows[name] = {
        "held": f"{held / 2**20:,.0f}",
        "on paper": f"{predicted[name][0] / 2**20:,.0f}",
        "peak": f"{peak / 2**20:,.0f}",
        "peak, on paper": f"{predicted[name][1] / 2**20:,.0f}",
        "time": f"{time / plain:.2f}",
        "gradient off by": f"{error.item():.1e}",
    }
table = pd.DataFrame(rows).T
# sphinx_gallery_start_ignore
for _name, (_now, _peak, _, _gradient) in measured.items():
    assert 0.9 < _now / predicted[_name][0] < 1.1
    # the workspaces of the libraries, which shapes do not show
    assert -16 < (_peak - predicted[_name][1]) / 2**20 < 256
    assert _gradient.dtype == torch.float32
_off = {
    name: ((rest[3] - exact).norm() / exact.norm()).item()
    for name, rest in measured.items()
}
assert _off["float32"] == 0 and _off["float32, checkpoint"] < 1e-4
assert all(1e-4 < _off[name] < 0.5 for name in ("bfloat16", "bfloat16, checkpoint"))
_peaks = {name: rest[1] for name, rest in measured.items()}
assert _peaks["float32"] > _peaks["bfloat16"] > 1.2 * _peaks["bfloat16, checkpoint"]
# sphinx_gallery_end_ignore
table.rename_axis(columns="step, sizes in MiB")

# %%
# - **Peak.** It can be higher than on paper, because kernels need memory while they run.
# - **Time** is a multiple of the first row. Checkpointing computes most of forward twice. From Ampere (2020) on, products in
#   bfloat16 run on fast units (*tensor cores*) that products in float32 do not use, unless you allow TF32.
# - **Gradients.** Checkpointing repeats the same computation, so at most the last digits differ. bfloat16 has fewer digits, and
#   the gradient shows it, although it is stored in float32.
#
# The cache of autocast, measured:

# varies: The peak includes what the kernels of this GPU take.

peaks = {}
for cache in (True, False):
    peaks[cache] = measure(True, True, 1, cache)[1]
    print(f"cache_enabled={cache!s:<5} peak {peaks[cache] / 2**20:>7,.0f} MiB")
assert peaks[False] < peaks[True]

# %%
# An old peak. First a plain step runs. Then a step with checkpointing runs, once without a reset and once after one. The
# weights, their gradients and the batch are included:

# varies: The peak includes what the kernels of this GPU take.

net, batch = build("cuda")
torch.cuda.reset_peak_memory_stats()
peaks = []
for checkpointed in (False, True):
    forward(net, batch, checkpointed, False).backward()
    peaks.append(torch.cuda.max_memory_allocated())
torch.cuda.reset_peak_memory_stats()
forward(net, batch, True, False).backward()
peaks.append(torch.cuda.max_memory_allocated())
print(f"checkpoint, without a reset: {peaks[1] / peaks[0]:.2f} of the plain peak")
print(f"checkpoint, after a reset:   {peaks[2] / peaks[0]:.2f}")
assert peaks[1] == peaks[0] and 0.3 < peaks[2] / peaks[0] < 0.85

# %%
# Checkpointing under ``no_grad``:

# varies: The peak includes what the kernels of this GPU take.

with torch.no_grad():
    for checkpointed in (False, True):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        forward(net, batch, checkpointed, False)
        used = torch.cuda.max_memory_allocated() - before
        print(f"no_grad, checkpoint {checkpointed!s:<5} peak {used / 2**20:>6,.0f} MiB")
        assert used < measured["float32, checkpoint"][1]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`, what is kept, what is computed again, and common mistakes.
# - :ref:`sphx_glr_gallery_memory_precision.py`, which operation gives which type, and why weights stay in float32.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__ and
#   `torch.amp <https://docs.pytorch.org/docs/stable/amp.html>`__.
