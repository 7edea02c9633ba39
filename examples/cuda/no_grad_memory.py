r"""
How much GPU memory ``no_grad`` saves
=====================================

.. index::
   ! single: CUDA out of memory in validation
   single: no_grad; GPU memory

.. in-short::

   With the graph, most results stay in memory until backward. Under ``with torch.no_grad():`` a result is freed as soon
   as no variable refers to it. For ResNet-50, counted from shapes, one more image of 224 × 224 costs 81.9 MiB with the
   graph and 10.5 MiB without, so about 7.8 times as many images fit. On a real card, fragmentation can make this number
   smaller. Other models have other factors. ``model.eval()`` leaves the graph on.
"""

# %%
# The problem: validation runs out of memory
# ------------------------------------------
# Training works. Then you validate with ``model.eval()`` and a larger batch, and get *CUDA out of memory*. The forward pass
# still records a graph, and the graph keeps results for a backward that never comes. How much it keeps follows from the
# shapes:
#
# .. how-measured:: ResNet-50, written out as torchvision has it.

from torch import nn


def conv(inputs, outputs, size, stride=1):
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
    return layer, nn.BatchNorm2d(outputs)


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            *(*conv(inputs, width, 1), nn.ReLU(inplace=True)),
            *(*conv(width, width, 3, stride), nn.ReLU(inplace=True)),
            *conv(width, 4 * width, 1),
        )
        self.around = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            self.around = nn.Sequential(*conv(inputs, 4 * width, 1, stride))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.body(x)
        out += self.around(x)
        return self.relu(out)


def resnet50():
    stem = *conv(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    blocks, inputs = [], 64
    for width, number, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for place in range(number):
            blocks.append(Block(inputs, width, 1 if place else stride))
            inputs = 4 * width
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)
    return nn.Sequential(*stem, *blocks, *head)


# sphinx_gallery_start_ignore
_net = resnet50().to("meta")
assert sum(p.numel() for p in _net.parameters()) == 25_557_032
assert len(list(_net.parameters())) == 161
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: it runs on the meta device, where tensors have no data, and a dispatch mode adds up the storages in use.

import weakref

import torch
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


def predict(batch, mode, prepare=lambda net: net):
    """MiB at the peak of one forward pass, weights included."""
    with OnPaper() as paper, torch.device("meta"):
        net = prepare(resnet50())
        images = torch.zeros(batch, 3, 224, 224)
        with mode():
            net(images)
        return paper.peak / 2**20


# %%
# Peak memory of one forward pass, without a GPU:

import contextlib
import gc
import sys

import pandas as pd
import torch

with_graph = contextlib.nullcontext
modes = {"with the graph": with_graph, "no_grad": torch.no_grad}
batches = [8, 32, 64]
paper = pd.DataFrame(
    {name: [predict(size, mode) for size in batches] for name, mode in modes.items()},
    index=batches,
)

# figure: Peak memory over batch size, two straight lines from 8 to 64 images. With the graph the line rises from 0.7
#   to 5.2 GiB, under no_grad from 0.2 to 0.75 GiB.
look = {"style": ["o-", "s--"], "color": ["#c2410c", "#2563eb"], "xticks": batches}
names = {"xlabel": "images in the batch", "ylabel": "peak memory, GiB"}
title = "ResNet-50, one forward pass, on paper"
ax = (paper / 1024).plot(**look, **names, title=title, figsize=(7, 2.8), ylim=(0, 5.5))
ax.figure.tight_layout()

# sphinx_gallery_start_ignore
assert 5.2 < paper["with the graph"][64] / 1024 < 5.25
assert 0.7 < paper["no_grad"][64] / 1024 < 0.8
assert (paper.loc[8] / 1024).round(1).to_list() == [0.7, 0.2]
# sphinx_gallery_end_ignore

# %%
# Both lines are straight, so two numbers describe each: what one more image costs, and what is there without any image.

rows = {}
for name in modes:
    per_image = (paper[name][64] - paper[name][8]) / 56
    fixed = paper[name][8] - 8 * per_image
    assert all(abs(paper[name] - fixed - per_image * paper.index) < 1e-6)
    rows[name] = {"MiB per image": per_image, "fixed MiB": fixed}
lines = pd.DataFrame(rows).T
ratio = rows["with the graph"]["MiB per image"] / rows["no_grad"]["MiB per image"]
# sphinx_gallery_start_ignore
assert lines["MiB per image"].round(2).to_list() == [81.93, 10.53]
assert round(ratio, 1) == 7.8
assert all(lines["fixed MiB"] > 97) and all(lines["fixed MiB"] < 99)
import importlib
import warnings

try:  # where torchvision can be imported, its network has the same layers and the same peaks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _reference = importlib.import_module("torchvision.models").resnet50
except (ImportError, RuntimeError):
    _reference = None


def _shapes(net):
    return sorted(tuple(p.shape) for p in net.parameters())


def _is_the_same(reference):
    peaks = [
        (paper[name][32], predict(32, mode, lambda net: reference()))
        for name, mode in modes.items()
    ]
    return _shapes(_net) == _shapes(reference()) and all(
        abs(there / here - 1) < 1e-3 for here, there in peaks
    )


assert _reference is None or _is_the_same(_reference)
# sphinx_gallery_end_ignore
lines.round(2)

# %%
# The fixed part is nearly all weights: 25,557,032 parameters of 4 bytes are 97.5 MiB.
#
# Why the difference is so large
# ------------------------------
# With the graph, each convolution and each batch norm keeps its input, and each ReLU keeps its result. They add up over all
# layers.
#
# Under ``no_grad`` only the fullest moment counts. It is in the first block: the images, the input of the block, and three
# results of its full size.

images = 3 * 224 * 224
block_input = 64 * 56 * 56
block_result = 256 * 56 * 56
alive = 4 * (images + block_input + 3 * block_result) / 2**20
print(f"{alive:.2f} MiB an image")
assert round(alive, 6) == round(lines["MiB per image"]["no_grad"], 6)

# %%
# What eval() and a list of losses do
# -----------------------------------
# ``eval()`` changes what dropout and batch norm compute. The graph is still recorded:

changes = {
    "train()": paper["with the graph"][32],
    "eval()": predict(32, with_graph, lambda net: net.eval()),
    "eval() and no_grad": predict(32, torch.no_grad, lambda net: net.eval()),
}
for name, size in changes.items():
    print(f"{name:<20}{size:>8,.0f} MiB for 32 images")
assert abs(changes["eval()"] / changes["train()"] - 1) < 0.01
assert changes["eval() and no_grad"] < changes["eval()"] / 6

# sphinx_gallery_start_ignore
_kept = {}
for _training in (True, False):
    with OnPaper() as _meter, torch.device("meta"):
        _net = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.1), nn.Linear(64, 64))
        _images, _before = torch.zeros(512, 64), 0
        _before = _meter.held()
        _result = _net.train(_training)(_images)
        _kept[_training] = _meter.held() - _before - _result.nbytes
assert _kept[True] > _kept[False] == 512 * 64 * 4  # the input of the second layer
# sphinx_gallery_end_ignore

# %%
# A loss keeps its whole graph alive, and in validation no backward frees what the graph saved. To see it, the losses of three
# batches of 4 images go into a list, which is then emptied:

with OnPaper() as meter, torch.device("meta"):
    net, kept, before = resnet50(), [], meter.held()
    for _ in range(3):
        kept.append(net(torch.zeros(4, 3, 224, 224)).sum())
        print(f"{(meter.held() - before) / 2**20:7,.0f} MiB held")
    grown = meter.held() - before
    kept.clear()
    left = meter.held() - before
print(f"{left / 2**20:7,.0f} MiB when the losses are gone")
assert left < grown / 100

# sphinx_gallery_start_ignore
assert abs(grown / 2**20 / (12 * lines["MiB per image"]["with the graph"]) - 1) < 0.02
with OnPaper() as _meter, torch.device("meta"):
    _net, _before = resnet50(), _meter.held()
    _loss = _net(torch.zeros(4, 3, 224, 224)).sum()
    _loss.backward()
    _net.zero_grad()
    assert _meter.held() - _before == _loss.nbytes  # backward has freed the rest
# sphinx_gallery_end_ignore

# %%
# Which batch fits on which card?
# -------------------------------
# The driver reports the memory of the card. CUDA itself needs a part of it, the *context*: we assume 0.3 to 0.7 GiB. The rest
# is for tensors.

CONTEXT = 0.7, 0.3  # GiB


def largest(card, name, context):
    free = 1024 * (card - context) - lines["fixed MiB"][name]
    return int(free / lines["MiB per image"][name])


def span(card, name):
    low, high = (largest(card, name, context) for context in CONTEXT)
    return f"{low:,} to {high:,}"


cards = [8, 12, 16, 24, 40, 80]
limits = pd.DataFrame({name: [span(c, name) for c in cards] for name in modes}, cards)
limits.rename_axis("GiB", axis=0).rename_axis(columns="largest batch")

# %%
# These are upper limits. On a real card, convolutions may need working memory, free memory may be in pieces that are too small,
# and a card of 80 GB may report 79.2 GiB.
#
# A claim about a card of 11 GB
# -----------------------------
# You may read that a card of 11 GB holds 512 images under ``no_grad``, and runs out of memory with 128 images and the graph.
# Cards that are sold with 11 GB report 10.76 GiB (RTX 2080 Ti) to 10.92 GiB (GTX 1080 Ti).

for name in modes:
    low, high = largest(10.76, name, 0.7), largest(10.92, name, 0.3)
    print(f"{name:<15} {low:>4} to {high:>5,} images")
print(f"ratio: {ratio:.1f}")

# sphinx_gallery_start_ignore
assert [
    largest(10.76, "with the graph", 0.7),
    largest(10.92, "with the graph", 0.3),
] == [124, 131]
assert largest(10.76, "no_grad", 0.7) > 1.85 * 512
_ratios = [
    largest(card, "no_grad", context) / largest(card, "with the graph", context)
    for card in [*cards, 10.76, 10.92]
    for context in CONTEXT
]
assert all(7.7 < one < 7.9 for one in _ratios)
# sphinx_gallery_end_ignore

# %%
# - 128 images with the graph are **at the limit**. Whether they fit depends on the card, its driver and its kernels.
# - 512 images without a graph are about half of the limit, on paper.
# - The ratio is between 7.7 and 7.9 for each card in this section, on paper. A real card must find one free piece for each
#   result, so its ratio may be smaller.
#
# What people get wrong
# ---------------------
# **Calling only eval() in validation.** The graph stays, so use ``with torch.no_grad():`` too.
#
# **Keeping losses for a plot.** Memory grows with each batch. Keep numbers: ``loss.item()``.
#
# **Trying again inside the except block.** The exception keeps a reference to the stack, and the stack keeps references to
# the tensors. So leave the ``except`` block first, then try the smaller batch.
#
# Exercise
# --------
# What does freezing all weights save? Call ``requires_grad_(False)`` on the model, leave ``no_grad`` out, and predict the
# peak for 32 images before you run it on paper.
#
# .. solution::
#
# As much as ``no_grad``: neither the images nor the weights require a gradient, so no node is recorded.

frozen = predict(32, with_graph, lambda net: net.requires_grad_(False))
print(f"frozen: {frozen:.1f} MiB, under no_grad: {paper['no_grad'][32]:.1f} MiB")
assert frozen == paper["no_grad"][32]

# %%
# Measured on a GPU
# -----------------
# Shapes hide the working memory of kernels. So this is the same forward pass on a GPU, with PyTorch's own counter of the
# peak.
#
# .. needs-a-gpu::

# sphinx_gallery_time_limit = 500
if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

model = resnet50().cuda()


def peak(batch, mode):
    """MiB that a forward pass over ``batch`` images takes at most, weights included."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    images = torch.zeros(batch, 3, 224, 224, device="cuda")
    with mode():
        model(images)
    return torch.cuda.max_memory_allocated() / 2**20


# the libraries take memory of their own at the first call, and keep it
first = peak(8, with_graph)

# %%
# The measured peaks beside the predicted ones, in MiB. ``inference_mode`` takes about what ``no_grad`` takes: neither records
# a graph.

# varies: cuDNN chooses its algorithms by the GPU and the free memory, and some of them need more of it.

measured = pd.DataFrame(
    {
        "with the graph": [peak(size, with_graph) for size in batches],
        "no_grad": [peak(size, torch.no_grad) for size in batches],
        "inference_mode": [peak(size, torch.inference_mode) for size in batches],
    },
    index=batches,
)
both = measured.join(paper.add_suffix(", on paper")).round(0).astype(int)
# sphinx_gallery_start_ignore
# A kernel's own memory depends on the GPU more than on the batch, so it weighs on a small batch without limit.
for _name in modes:
    assert (measured[_name] / paper[_name]).min() > 0.9
assert (measured["with the graph"] / paper["with the graph"])[64] < 1.5
assert (measured["with the graph"] > 2 * measured["no_grad"])[64]
assert abs(measured["inference_mode"] / measured["no_grad"] - 1).max() < 0.2
# sphinx_gallery_end_ignore
both.rename_axis("images").rename_axis(columns="peak MiB")

# %%
# The dotted lines are the prediction.

# varies: cuDNN chooses its algorithms by the GPU and the free memory, and some of them need more of it.

# figure: Measured peak memory over batch size, two rising curves, each beside a dotted line that was predicted. The
#   one with the graph rises several times as steeply as the one under no_grad.
ax = (measured[list(modes)] / 1024).plot(**look, **names, figsize=(7, 2.8), zorder=2)
for name in modes:
    ax.plot(batches, paper[name] / 1024, ":", color="#64748b", linewidth=2.5)
ax.set_ylim(bottom=0)
ax.set_title("ResNet-50, one forward pass, measured")
ax.figure.tight_layout()

slopes = (measured.loc[64] - measured.loc[8]) / 56
print(slopes.round(1).to_string())
assert slopes["with the graph"] > 3 * slopes["no_grad"]

# %%
# A large GPU can play a small one: ``set_per_process_memory_fraction`` limits what PyTorch's allocator may take. Beyond that,
# an allocation fails as it does on a full card. The limit is 10.76 GiB less 0.4 GiB for a context. Doubling finds a batch
# that is too large, and halving the interval finds one that fits while the next does not.

LIMIT = (10.76 - 0.4) * 2**30
total = torch.cuda.get_device_properties(0).total_memory
assert total > LIMIT, "this GPU is smaller than the card to imitate"
torch.cuda.set_per_process_memory_fraction(LIMIT / total)
TOO_LARGE = "out of memory", "unable to find an engine", "STATUS_ALLOC_FAILED"


def refusal(batch, mode):
    """What the allocator, or cuDNN, says if the batch does not fit; else nothing."""
    try:
        peak(batch, mode)
    except RuntimeError as error:
        if not any(words in str(error) for words in TOO_LARGE):
            raise
        return str(error)
    return ""


def largest_measured(mode):
    low, high = 1, 2
    while not refusal(high, mode):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refusal(middle, mode) else (middle, high)
    return low


# varies: The largest batch depends on the algorithms that cuDNN chooses on this GPU, and on the order of allocations.

most = {name: largest_measured(mode) for name, mode in modes.items()}
for name, found in most.items():
    predicted = largest(10.76, name, 0.4)
    print(f"largest batch, {name:<14} {found:>5}   on paper {predicted:>5}")
    assert 0.3 < found / predicted < 1.05
print(f"ratio: {most['no_grad'] / most['with the graph']:.1f}")
print("128 with the graph:", "out of memory" if refusal(128, with_graph) else "fits")
print("512 under no_grad: ", "out of memory" if refusal(512, torch.no_grad) else "fits")
assert most["no_grad"] > 2 * most["with the graph"]

# %%
# The message for a batch that is a little too large. It is about the first allocation that fails, and does not know what the
# rest of the pass would need. *Allowed* is the limit that was set above.

# varies: The sizes depend on the GPU and on what was allocated before.

message = refusal(int(1.15 * most["no_grad"]), torch.no_grad)
for sentence in message.split(". ")[:6]:
    print(sentence)
assert any(words in message for words in TOO_LARGE)

# %%
# *Reserved but unallocated* memory is free, but in pieces that are too small for the next result: *fragmentation*. With
# ``expandable_segments`` the allocator can let a segment grow instead of asking for another one. You would set
# ``PYTORCH_ALLOC_CONF=expandable_segments:True`` before Python starts (the message has the variable's older name). This cell
# calls a private function instead.

# varies: The largest batch depends on the algorithms that cuDNN chooses on this GPU, and on the order of allocations.

torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
grown = {name: largest_measured(mode) for name, mode in modes.items()}
for name, found in grown.items():
    print(f"{name:<15} {most[name]:>4}, now {found:>4}")
print(f"ratio: {grown['no_grad'] / grown['with the graph']:.1f}")
assert all(grown[name] >= 0.97 * most[name] for name in modes)

# sphinx_gallery_start_ignore
torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
torch.cuda.set_per_process_memory_fraction(1.0)
# sphinx_gallery_end_ignore

# %%
# What the driver has given out and PyTorch has not reserved belongs to CUDA, its libraries, and other programs on this GPU:

# varies: It depends on the GPU, its driver and the libraries that were loaded.

free, total = torch.cuda.mem_get_info()
print(f"{(total - free - torch.cuda.memory_reserved()) / 2**30:.2f} GiB")

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`, more about counting memory from shapes.
# - :ref:`sphx_glr_gallery_memory_memory_by_mode.py`, the modes side by side on a small network.
# - In PyTorch's reference: `CUDA memory management <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>`__
#   and `torch.no_grad <https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html>`__.
