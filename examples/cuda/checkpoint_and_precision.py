r"""
Checkpointing and bfloat16 on a GPU: memory, time, gradients
============================================================

Two switches lower the memory of a training step: *checkpointing* forgets results and computes them again, and
*autocast* computes products in bfloat16. This page measures both, and the two together, on 24 layers of a
transformer. Beside each measured peak stands a prediction, made without the GPU.
"""

# %%
# The model
# ---------
# A layer of a transformer: attention, and a network that is four times wider inside, each with a norm before it.

# sphinx_gallery_time_limit = 500
import sys
import weakref

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

# %%
# The rest needs a GPU.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 24, 1024, 16, 8, 512


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


# %%
# ``build`` makes the model, a batch, and a gradient of zeros for each weight: what a step adds on top of these is
# what it takes for itself.


def build(device):
    torch.manual_seed(0)
    with torch.device(device):
        net = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        batch = torch.randn(BATCH, LENGTH, WIDTH)
    for weight in net.parameters():
        weight.grad = torch.zeros_like(weight)
    return net, batch


# %%
# A step in four ways
# -------------------
# There is no dropout here, so checkpointing has no random state to keep. ``backward`` stands outside of autocast: it
# uses the types that forward used.


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
# The prediction
# --------------
# Under ``FakeTensorMode`` the same code runs with shapes and no data, on the CPU, and a dispatch mode notes each
# storage as it comes and goes. Both are explained on the page about :ref:`checkpointing
# <sphx_glr_gallery_memory_checkpointing.py>`. What a kernel takes for itself is not seen.


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


# %%
# Two numbers come out: what the graph holds when forward is done, and the peak of the whole step.


def predict(*way):
    with FakeTensorMode(), OnPaper() as paper:
        net, batch = build("cpu")
        before, paper.peak = paper.held(), 0
        loss = forward(net, batch, *way)
        held = paper.held() - before
        loss.backward()
        return held, paper.peak - before


predicted = {name: predict(*way) for name, way in ways.items()}
for name, sizes in predicted.items():
    held, peak = (size / 2**20 for size in sizes)
    print(f"{name:<21} held {held:>9,.1f} MiB   peak {peak:>9,.1f} MiB")

# sphinx_gallery_start_ignore
_held = {name: held for name, (held, _) in predicted.items()}
_inputs = LAYERS * BATCH * LENGTH * WIDTH * 4
assert abs(_held["float32, checkpoint"] / _inputs - 1) < 0.01
assert abs(_held["bfloat16, checkpoint"] / _inputs - 1) < 0.01
_peaks = {name: peak for name, (_, peak) in predicted.items()}
assert _peaks["bfloat16, checkpoint"] > 1.2 * _peaks["float32, checkpoint"]
assert torch.get_float32_matmul_precision() == "highest"
# sphinx_gallery_end_ignore

# %%
# With checkpointing the graph holds the inputs of the layers, which stay in float32 under autocast too. The last line
# is a surprise: bfloat16 makes the peak *higher* there. The reason comes below.

# %%
# The measurement
# ---------------
# The first step is for the libraries, which allocate their workspaces then. It also gives the gradient. The second
# one is measured in bytes, and three more are timed.


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
    return held, peak, min(milliseconds(net, batch, way) for _ in range(3)), gradient


def milliseconds(net, batch, way):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    forward(net, batch, *way).backward()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


# %%
# The four models are built from one seed, so they have the same weights. What is compared is the gradient of the
# first layer, the last one that backward reaches.

# varies: Times depend on the GPU. The peak includes what its kernels take, and rounding depends on how they add up.

measured = {name: measure(*way) for name, way in ways.items()}
exact, fastest = measured["float32"][3], measured["float32"][2]

rows = {}
for name, (held, peak, time, gradient) in measured.items():
    error = (gradient - exact).norm() / exact.norm()
    rows[name] = {
        "held": f"{held / 2**20:,.0f}",
        "held, predicted": f"{predicted[name][0] / 2**20:,.0f}",
        "peak": f"{peak / 2**20:,.0f}",
        "peak, predicted": f"{predicted[name][1] / 2**20:,.0f}",
        "time": f"{time / fastest:.2f}",
        "gradient off by": f"{error.item():.1e}",
    }
table = pd.DataFrame(rows).T
# sphinx_gallery_start_ignore
for _name, (_now, _peak, _, _gradient) in measured.items():
    assert 0.9 < _now / predicted[_name][0] < 1.1
    assert 0.8 < _peak / predicted[_name][1] < 1.3
_off = {
    name: ((rest[3] - exact).norm() / exact.norm()).item()
    for name, rest in measured.items()
}
assert _off["float32"] == 0 and _off["float32, checkpoint"] < 1e-4
assert all(1e-4 < _off[name] < 0.5 for name in ("bfloat16", "bfloat16, checkpoint"))
assert all(rest[3].dtype == torch.float32 for rest in measured.values())
_peaks = {name: rest[1] for name, rest in measured.items()}
assert _peaks["float32"] > _peaks["bfloat16"] > 2 * _peaks["bfloat16, checkpoint"]
assert _peaks["bfloat16, checkpoint"] > 1.1 * _peaks["float32, checkpoint"]
# sphinx_gallery_end_ignore
table.rename_axis(columns="step, sizes in MiB")

# %%
# - **Memory.** Checkpointing saves most. The predictions are close, so whether a batch fits can be known without
#   trying it.
# - **Time** is given as a multiple of the first row. Checkpointing computes forward twice. Products in bfloat16 run
#   on units of the GPU that products in float32 do not use, unless TF32 is allowed.
# - **Gradients.** Checkpointing repeats the same computation, so at most the last digits differ. bfloat16 has fewer
#   digits, and the gradient shows it, though it is stored in float32 like the weights.

# figure: Four horizontal bars, the peak of a step in GiB: float32 is longest, then bfloat16. The two with
#   checkpointing are much shorter, and of these bfloat16 is the longer. A diamond near the end of each bar is the
#   prediction.
fig, ax = plt.subplots(figsize=(7, 2.8))
place = range(len(ways))
bars = [peak / 2**30 for _, peak, _, _ in measured.values()]
colors = ["#2563eb" if lower else "#c2410c" for _, lower in ways.values()]
ax.barh(place, bars, color=colors)
diamonds = [peak / 2**30 for _, peak in predicted.values()]
ax.plot(diamonds, place, "D", color="#1e293b", markersize=6, label="predicted")
ax.set_yticks(place, ways)
ax.invert_yaxis()
ax.set_xlabel("peak of a step beyond weights, gradients and batch, GiB")
ax.set_title("Four ways through one model")
ax.legend(loc="lower right")
fig.tight_layout()

# %%
# Why bfloat16 does not halve it
# ------------------------------
# Autocast lowers products and what follows them. The norms and the sums ``x + …`` stay in float32. And the products
# save a copy of each weight in bfloat16, which in float32 they do not need.

# varies: The memory of a step includes what the kernels of this GPU take.

net, _ = build("meta")
linears = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
copies = sum(2 * linear.weight.numel() for linear in linears)
share = measured["bfloat16"][0] / measured["float32"][0]
print(f"held in bfloat16: {share:.0%} of float32")
print(f"of this, copies of weights: {copies / measured['bfloat16'][0]:.0%}")
assert 0.5 < share < 0.8 and 0.05 < copies / measured["bfloat16"][0] < 0.25

# %%
# The copies explain the surprise, too. Autocast *caches* the copy of a weight until the ``with`` ends, in case the
# weight is used again. With checkpointing nobody else would keep them. ``cache_enabled=False`` leaves the cache out.

# varies: The peak includes what the kernels of this GPU take.

peaks = {}
for cache in (True, False):
    way = (True, True, 1, cache)
    peaks[cache] = measure(*way)[1]
    print(
        f"cache_enabled={cache!s:<5} peak {peaks[cache] / 2**20:>7,.0f} MiB, "
        f"predicted {predict(*way)[1] / 2**20:>7,.0f} MiB"
    )
assert peaks[False] < 0.8 * peaks[True]

# %%
# What people get wrong
# ---------------------
# **Reading an old peak.** ``max_memory_allocated`` is the highest value since the program began, or since the last
# reset. A cheap run after an expensive one seems to need the same.

# varies: The peak includes what the kernels of this GPU take.

net, batch = build("cuda")
peaks = []
for checkpointed in (False, True):
    forward(net, batch, checkpointed, False).backward()
    peaks.append(torch.cuda.max_memory_allocated())
torch.cuda.reset_peak_memory_stats()
forward(net, batch, True, False).backward()
peaks.append(torch.cuda.max_memory_allocated())
print(f"checkpoint, without a reset: {peaks[1] / peaks[0]:.2f} of the plain peak")
print(f"checkpoint, after a reset:   {peaks[2] / peaks[0]:.2f}")
assert peaks[1] == peaks[0] and peaks[2] < peaks[0] / 2

# %%
# **Checkpointing for inference.** Under ``no_grad`` nothing is saved, so there is nothing to forget. The call does no
# harm, and has no use.

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
# Exercise
# --------
# ``together`` puts several layers into one checkpoint. Fewer inputs are kept then. Is the peak of a step lowest with
# 1, 2, 4 or 8 layers together? Predict it on paper, and check the extremes on the GPU.
#
# .. solution::
#
# With 1. While a checkpoint is worked on, everything that its layers save is there, and one layer saves much more
# than the one input that is kept for it.

# varies: The peak includes what the kernels of this GPU take.

several = {together: predict(True, False, together)[1] for together in (1, 2, 4, 8)}
for together, peak in several.items():
    print(f"{together} together: predicted {peak / 2**20:>7,.0f} MiB")
tried = {together: measure(True, False, together)[1] for together in (1, 8)}
for together, peak in tried.items():
    print(f"{together} together: measured  {peak / 2**20:>7,.0f} MiB")
assert list(several.values()) == sorted(several.values()) and tried[8] > 2 * tried[1]

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_cuda_memory_snapshot.py`, how the numbers of the allocator are to be read.
# - Next: :ref:`sphx_glr_gallery_cuda_determinism_on_gpu.py`, when two runs give the same digits.
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`, what is kept, what is computed again, and common mistakes.
# - :ref:`sphx_glr_gallery_memory_precision.py`, which operation gives which type, and why weights stay in float32.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__ and
#   `torch.amp <https://docs.pytorch.org/docs/stable/amp.html>`__.
