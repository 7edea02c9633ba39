r"""
How much GPU memory ``no_grad`` saves
=====================================

While a graph is recorded, every result that backward will need stays in memory. Under ``torch.no_grad()`` nothing
is recorded, and a result is freed as soon as the next layer has used it. This page predicts the difference on a
ResNet-50, measures it, and then settles a claim that is often repeated: on a card of 11 GB, a batch of 128 images
runs out of memory without ``no_grad``, and 512 fit with it.
"""

# %%
# The model and the measure
# -------------------------
# A forward pass over a batch of images of 224 × 224 pixels. ``max_memory_allocated`` is the most that tensors took
# at any moment since the last reset, in bytes. Nothing is learned here, so the weights may be random.

# sphinx_gallery_time_limit = 500
import contextlib
import gc
import weakref

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torchvision
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

assert torch.cuda.is_available(), "this page needs a CUDA device"

torch.manual_seed(0)
model = torchvision.models.resnet50(weights=None).cuda()
weights = sum(p.numel() for p in model.parameters())
print(f"{weights:,} parameters, {4 * weights / 2**20:.0f} MiB")
assert weights == 25_557_032


def peak(batch, mode):
    """MiB that a forward pass over ``batch`` images takes at most, weights included."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    images = torch.zeros(batch, 3, 224, 224, device="cuda")
    with mode():
        model(images)
    return torch.cuda.max_memory_allocated() / 2**20


# %%
# The prediction
# --------------
# Under ``FakeTensorMode`` the same code runs with shapes and no data, on the CPU, and a dispatch mode notes each
# storage as it comes and goes. Both are explained on the page about :ref:`checkpointing
# <sphx_glr_gallery_memory_checkpointing.py>`.


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
        self.peak = max(self.peak, sum(self.sizes.values()))
        return result


def predict(batch, mode):
    """What ``peak`` would find, from the shapes alone."""
    with FakeTensorMode(), OnPaper() as paper:
        net = torchvision.models.resnet50(weights=None)
        images = torch.zeros(batch, 3, 224, 224)
        with mode():
            net(images)
        return paper.peak / 2**20


# %%
# Every image adds the same. Two batches give the line that all others lie on: what one more image costs, and what is
# taken without any.

with_graph = contextlib.nullcontext


def line(mode):
    small, large = predict(32, mode), predict(64, mode)
    per_image = (large - small) / 32
    fixed = small - 32 * per_image
    assert predict(8, mode) == fixed + 8 * per_image
    return per_image, fixed


on_paper = {"with the graph": line(with_graph), "no_grad": line(torch.no_grad)}
for name, (per_image, fixed) in on_paper.items():
    print(f"{name:<14} {per_image:6.2f} MiB an image, and {fixed:4.0f} MiB")
print(f"ratio: {on_paper['with the graph'][0] / on_paper['no_grad'][0]:.1f}")
assert on_paper["with the graph"][0] > 4 * on_paper["no_grad"][0]

# %%
# Peak memory by batch size
# -------------------------
# One forward pass is not counted: the libraries behind a convolution take memory of their own at the first call,
# and keep it.

peak(8, with_graph)

# varies: cuDNN chooses its algorithms by the GPU and the free memory, and some of them need more of it.

batches = [8, 16, 32, 64]
measured = pd.DataFrame(
    {
        "with the graph": [peak(batch, with_graph) for batch in batches],
        "no_grad": [peak(batch, torch.no_grad) for batch in batches],
        "inference_mode": [peak(batch, torch.inference_mode) for batch in batches],
    },
    index=batches,
)
table = measured.round(0).astype(int).rename_axis(columns="peak MiB, by batch")
for name, (per_image, fixed) in on_paper.items():
    table[f"{name}, predicted"] = [round(fixed + per_image * size) for size in batches]
# sphinx_gallery_start_ignore
# A kernel's own memory depends on the GPU more than on the batch, so it weighs on a small batch without limit.
for _name in on_paper:
    _share = measured[_name] / table[f"{_name}, predicted"]
    assert _share.min() > 0.9, _share
assert (measured["with the graph"] / table["with the graph, predicted"])[64] < 1.5
assert (measured["no_grad"] / table["no_grad, predicted"])[64] < 3
# sphinx_gallery_end_ignore
assert (measured["with the graph"] > 3 * measured["no_grad"])[64]
assert abs(measured["inference_mode"] / measured["no_grad"] - 1).max() < 0.1
table

# %%
# What a kernel takes for itself is in no prediction. ``inference_mode`` takes what ``no_grad`` takes: it saves time
# elsewhere, not memory here.

# varies: cuDNN chooses its algorithms by the GPU and the free memory, and some of them need more of it.

# figure: Peak memory over batch size, two rising curves, each beside a dotted line that was predicted. The one with the
#   graph rises several times as steeply as the one under no_grad.
fig, ax = plt.subplots(figsize=(7, 3.8))
styles = {"with the graph": ("o-", "#c2410c"), "no_grad": ("s--", "#2563eb")}
for column, (style, color) in styles.items():
    ax.plot(batches, measured[column] / 1024, style, color=color, label=column)
    predicted = table[f"{column}, predicted"] / 1024
    (dotted,) = ax.plot(batches, predicted, ":", color="#64748b", linewidth=2.5)
dotted.set_label("predicted")
ax.set_xticks(batches)
ax.set_ylim(bottom=0)
ax.set_xlabel("images in the batch")
ax.set_ylabel("peak memory, GiB")
ax.set_title("ResNet-50, one forward pass: what the graph keeps alive")
ax.legend()
fig.tight_layout()

# %%
# The slope of each line is what one more image costs.

# varies: cuDNN chooses its algorithms by the GPU and the free memory, and some of them need more of it.

slopes = (measured.loc[64] - measured.loc[8]) / 56
print(slopes.round(1).to_string())
print(f"ratio: {slopes['with the graph'] / slopes['no_grad']:.1f}")
assert slopes["with the graph"] > 4 * slopes["no_grad"]

# %%
# An 11 GB card
# -------------
# A large GPU can play a small one. ``set_per_process_memory_fraction`` limits what PyTorch's allocator may take;
# past it, an allocation fails as it does on a full card. Here it may take 11 · 10⁹ bytes, which is 10.2 GiB. First, on
# paper:

CARD = 11 * 10**9
expected = {
    name: int((CARD / 2**20 - fixed) / per_image)
    for name, (per_image, fixed) in on_paper.items()
}
print(expected)
assert expected == {"with the graph": 126, "no_grad": 987}

# %%
# So the claim's 128 images with the graph do not fit, by a little, and its 512 without one are far from the limit. On
# the GPU something is lost besides: what kernels take for themselves, and pieces of memory that are too small for the
# next tensor.

total = torch.cuda.get_device_properties(0).total_memory
assert total > CARD, "this GPU is smaller than the card to imitate"
torch.cuda.set_per_process_memory_fraction(CARD / total)


def fits(batch, mode):
    try:
        peak(batch, mode)
    except torch.OutOfMemoryError:
        return False
    except RuntimeError as error:  # what cuDNN says when its own memory does not fit
        if "unable to find an engine" not in str(error):
            raise
        return False
    return True


# %%
# Doubling finds a batch that is too large, and halving the interval finds the largest one that fits.


def largest(mode):
    low, high = 1, 2
    while fits(high, mode):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, mode) else (low, middle)
    return low


# varies: The largest batch depends on the algorithms that cuDNN chooses on this GPU, and on the order of allocations.

most = {"with the graph": largest(with_graph), "no_grad": largest(torch.no_grad)}
for name, found in most.items():
    print(f"largest batch, {name:<14} {found:>5}   on paper {expected[name]:>5}")
    assert 0.3 < found / expected[name] < 1.05
ratio = most["no_grad"] / most["with the graph"]
print(f"ratio: {ratio:.1f}, more than four: {ratio > 4}")
assert ratio > 3

# %%
# The ratio is the claim's last part, *more than four times less*. The two batch sizes of the claim are tried
# themselves:

# varies: Whether a batch near the limit fits depends on the algorithms that cuDNN chooses on this GPU.

for batch, name, mode in [
    (128, "with the graph", with_graph),
    (512, "under no_grad", torch.no_grad),
]:
    print(f"{batch} images {name}: {'fits' if fits(batch, mode) else 'out of memory'}")
assert not fits(128, with_graph)

# %%
# The message
# -----------
# This is what the allocator says when a batch is too large. The sizes tell whether you are close: what was asked
# for, and what is held already. *Allowed* is the limit that was set above.

# varies: The sizes depend on the GPU and on what was allocated before.

try:
    peak(512, with_graph)
except torch.OutOfMemoryError as error:
    message = str(error)
for sentence in message.split(". ")[:5]:
    print(sentence)
assert message.startswith("CUDA out of memory. Tried to allocate")

# %%
# What people get wrong
# ---------------------
# **eval() to save memory.** It changes what dropout and batch norm compute. The graph is recorded as before, and
# the memory stays taken.

# varies: cuDNN chooses its algorithms by the GPU and the free memory, and some of them need more of it.

model.train()
in_training = peak(32, with_graph)
model.eval()
in_evaluation = peak(32, with_graph)
without_graph = peak(32, torch.no_grad)
print(f"train():            {in_training:6.0f} MiB")
print(f"eval():             {in_evaluation:6.0f} MiB")
print(f"eval() and no_grad: {without_graph:6.0f} MiB")
assert abs(in_evaluation / in_training - 1) < 0.1
assert without_graph < in_evaluation / 3

# %%
# **Keeping losses for a plot.** Each loss holds its whole graph, and with it every saved result. Keep numbers:
# ``loss.item()``.

kept, before = [], torch.cuda.memory_allocated()
for _ in range(3):
    kept.append(model(torch.zeros(4, 3, 224, 224, device="cuda")).sum())
    print(f"{(torch.cuda.memory_allocated() - before) / 2**20:6.0f} MiB held")
grown = torch.cuda.memory_allocated() - before
kept = [loss.item() for loss in kept]
print(
    f"{(torch.cuda.memory_allocated() - before) / 2**20:6.0f} MiB with numbers instead"
)
assert torch.cuda.memory_allocated() - before < grown / 10

# %%
# **Catching the error and going on inside the handler.** The exception holds the stack, and the stack holds the
# tensors. In ``fits`` the handler ends first, and only then is memory asked for again.

# %%
# Exercise
# --------
# What does freezing all weights save? Call ``requires_grad_(False)`` on the model, leave ``no_grad`` out, and
# predict the peak for 32 images before you measure it.
#
# .. solution::
#
# Nothing requires a gradient then: neither the images nor the weights. No node is recorded, and the peak is that of
# ``no_grad``.

model.requires_grad_(False)
frozen = peak(32, with_graph)
print(f"frozen, as a share of no_grad: {frozen / without_graph:.2f}")
assert 0.9 < frozen / without_graph < 1.1

# sphinx_gallery_start_ignore
torch.cuda.set_per_process_memory_fraction(1.0)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_cuda_devices.py`, where tensors live.
# - Next: :ref:`sphx_glr_gallery_cuda_cuda_profiler.py`, kernels, and where the CPU waits for them.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, what a node keeps for its backward.
# - In PyTorch's reference:
#   `CUDA memory management <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>`__ and
#   `torch.no_grad <https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html>`__.
