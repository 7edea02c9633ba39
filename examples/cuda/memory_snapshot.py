r"""
GPU memory: allocated, reserved, empty_cache and the snapshot
=============================================================

.. in-short::

   ``nvidia-smi`` shows more than your tensors, because PyTorch keeps freed memory for the next ones, and CUDA itself needs
   some. PyTorch takes *segments* from the driver and cuts *blocks* for tensors out of them. ``memory_allocated()`` counts
   blocks, ``memory_reserved()`` counts segments. ``empty_cache()`` gives back only segments in which no tensor lives. To see
   which lines hold the memory, record a snapshot. The training step on this page uses the most memory when backward begins.
"""

# %%
# The problem: a deleted tensor, and the same number in nvidia-smi
# ----------------------------------------------------------------
# You ``del`` a tensor of 2 MiB, call ``empty_cache()``, and ``nvidia-smi`` shows what it showed before. One reason: ten
# tensors of 2 MiB share one segment, and nine of them are deleted.

# sphinx_gallery_time_limit = 500
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

MIB = 2**20

# figure: A bar of 20 MiB, the segment. A piece of 2 MiB at 10 MiB is a tensor. The 10 MiB before it and the 8 MiB
#   behind it are free.
fig, ax = plt.subplots(figsize=(7, 1.5))
ax.broken_barh([(0, 10), (12, 8)], (0, 1), facecolors="#e2e8f0", edgecolor="#64748b")
ax.broken_barh([(10, 2)], (0, 1), facecolors="#2563eb")
ax.set(yticks=[], xlim=(0, 20), xlabel="MiB", title="One tensor keeps a segment")
fig.tight_layout()

# %%
# *Allocated* is 2 MiB now, and *reserved* is 20 MiB. The segment cannot go back to the driver, because a tensor lives in it.
# Other tensors can use the 18 MiB, but they are in two pieces. A tensor of 12 MiB fits into neither and needs a new segment.
# This is *fragmentation*.
#
# The rules of rounding
# ---------------------
# The default allocator follows these rules when nothing is cached. A tensor of 101 MiB takes the whole segment of 102 MiB: the
# rest is cut off for others only if it is larger than 1 MiB.


def rounded(size):
    """Sizes are rounded up to multiples of 512 bytes."""
    return 512 * -(-size // 512)


def segment(size):
    """What is asked of the driver, if no segment has room."""
    if rounded(size) <= MIB:
        return 2 * MIB  # shared by small tensors
    if rounded(size) < 10 * MIB:
        return 20 * MIB  # shared by medium ones
    return 2 * MIB * -(-rounded(size) // (2 * MIB))  # one for each large tensor


def block(size):
    """What the tensor takes of a new segment."""
    rest = segment(size) - rounded(size)
    is_cut = rounded(size) <= MIB or rest > MIB
    return rounded(size) if is_cut else segment(size)


sizes = [4, 513, MIB, MIB + 1, 2 * MIB, 9 * MIB, 10 * MIB, 101 * MIB]
rules = pd.DataFrame(
    {
        "bytes of the tensor": [f"{size:,}" for size in sizes],
        "its block": [f"{block(size):,}" for size in sizes],
        "a new segment, MiB": [segment(size) // MIB for size in sizes],
    }
)

# sphinx_gallery_start_ignore
assert [block(size) for size in sizes[:3]] == [512, 1024, MIB]
assert [block(size) - size for size in sizes[3:]] == [511, 0, 0, 0, MIB]
assert list(rules["a new segment, MiB"]) == [2, 2, 2, 20, 20, 20, 10, 102]
# sphinx_gallery_end_ignore
rules

# %%
# One training step, on paper
# ---------------------------
# Twelve blocks of layer norm, linear, GELU and linear, as in a transformer without its attention:

TOKENS, WIDTH, BLOCKS = 8192, 1024, 12


def build(device):
    def layers():
        wide, narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        return nn.Sequential(nn.LayerNorm(WIDTH), wide, nn.GELU(), narrow)

    torch.manual_seed(0)
    with torch.device(device):
        return nn.Sequential(*(layers() for _ in range(BLOCKS))), torch.randn(
            TOKENS, WIDTH
        )


def loss_of(model, batch):
    return model(batch).square().mean()


# %%
# For backward, a block saves the inputs of the norm and of the first linear layer, and the four times wider inputs of GELU and
# of the second linear layer. Together they are as large as 10 batches.
#
# .. how-measured:: the step runs on the meta device, where tensors have no data, and a dispatch mode adds up the storages.

import weakref

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


def readings_of(model, batch, held):
    """Bytes in use between the parts of one step."""
    optimizer = torch.optim.Adam(model.parameters())
    readings = {"before": held()}
    loss = loss_of(model, batch)
    readings["forward"] = held()
    loss.backward()
    readings["backward"] = held()
    optimizer.step()
    readings["step"] = held()
    optimizer.zero_grad()
    readings["zero_grad"] = held()
    return readings


def samples_of(model, batch, held):
    """Bytes in use when a block is done in forward, and when backward arrives at it."""
    samples, handles = [], []

    def watch(number, module):
        def after_forward(module, inputs, output):
            samples.append(("forward", number, held()))
            output.register_hook(before_backward)

        def before_backward(gradient):
            samples.append(("backward", number, held()))

        handles.append(module.register_forward_hook(after_forward))

    for number, module in enumerate(model):
        watch(number, module)
    loss_of(model, batch).backward()
    for handle in handles:
        handle.remove()
    return samples


with OnPaper() as paper:
    model, batch = build("meta")
    expected = readings_of(model, batch, paper.held)
    before, paper.peak = paper.held(), 0
    samples = samples_of(model, batch, paper.held)
    peak = paper.peak

weights = sum(weight.nbytes for weight in model.parameters())
saved = 10 * BLOCKS * batch.nbytes

# %%
# The bytes in use after each part of a step:

steps = pd.DataFrame({"in use": expected})
steps["change"] = steps["in use"].diff().fillna(0)

# sphinx_gallery_start_ignore
_expected = [saved, weights - saved, 2 * weights, -weights]
for _change, _rule in zip(steps["change"][1:], _expected, strict=True):
    assert abs(_change / _rule - 1) < 0.03, (_change, _rule)
# sphinx_gallery_end_ignore
(steps / MIB).round(0).astype(int).rename_axis(columns="MiB on paper, after")

# %%
# - The **forward pass** adds what the graph saves: 12 blocks of 10 tensors of 32 MiB.
# - **backward** frees that, and leaves a gradient for each weight.
# - The first **step** of Adam adds two averages for each weight, and they stay.
# - **zero_grad** frees the gradients.
#
# Memory rises with each block of the forward pass and falls again in backward. The peak of this step is a little later than the
# end of forward: the first gradients are already there, and hardly anything has been freed. (With a small batch, the results
# are smaller than the weights, and the peak may be at the end of backward, or in the optimizer's step.)


def draw(samples, peak, title):
    fig, ax = plt.subplots(figsize=(7, 3.2))
    styles = {"forward": ("o-", "#2563eb"), "backward": ("s-", "#c2410c")}
    for part, (style, color) in styles.items():
        places = [i for i, sample in enumerate(samples) if sample[0] == part]
        heights = [samples[place][2] / 2**30 for place in places]
        ax.plot(places, heights, style, color=color, label=part)
    ax.axhline(peak / 2**30, linestyle="--", color="#64748b", label="peak")
    ax.set_xticks(range(len(samples)), [number for _, number, _ in samples], fontsize=8)
    ax.set_ylim(0, 1.1 * peak / 2**30)
    ax.set_xlabel("block that was done (forward), or that comes next (backward)")
    ax.set_ylabel("in use, GiB")
    ax.set_title(title)
    ax.legend(loc="lower center")
    fig.tight_layout()


# figure: Memory in use over the 24 samples of one step, on paper. It rises evenly with each of the twelve blocks in
#   the forward pass and falls evenly again in backward, to 0.34 GiB above where it began. A dashed line above all
#   points is the peak.
draw(samples, peak, "What forward saves, backward frees (on paper)")


# sphinx_gallery_start_ignore
def check(samples, before, peak):
    up = [size for part, _, size in samples if part == "forward"]
    down = [size for part, _, size in samples if part == "backward"]
    assert len(up) == len(down) == BLOCKS
    rises = [high - low for low, high in zip([before, *up[:-1]], up, strict=True)]
    assert all(0.9 < rise / (10 * batch.nbytes) < 1.1 for rise in rises)
    assert down == sorted(down, reverse=True) and len(set(down)) == BLOCKS
    assert peak > max(up) and peak >= max(down) and down[0] > 0.9 * peak
    assert before < down[-1] < before + 0.3 * (peak - before)
    order = [number for _, number, _ in samples]
    assert order == [*range(BLOCKS), *reversed(range(BLOCKS))]


check(samples, before, peak)
with OnPaper() as _paper:
    _model, _batch = build("meta")
    _adam = torch.optim.Adam(_model.parameters())
    loss_of(_model, _batch[:256].clone()).backward()
    _peak = _paper.peak
    _adam.step()
    assert _paper.peak > 1.5 * _peak
    del _model, _batch, _adam
    _tensor = torch.zeros(1000, device="meta")
    _before, _view = _paper.held(), _tensor[:1]
    del _tensor
    assert _paper.held() == _before  # the view keeps all of it
# sphinx_gallery_end_ignore

# %%
# Which lines hold the memory?
# ----------------------------
# Record a step on your GPU, write a file, and open it on pytorch.org/memory_viz:
#
# .. code-block:: python
#
#    torch.cuda.memory._record_memory_history()
#    step()
#    torch.cuda.memory._dump_snapshot("snapshot.pickle")
#    torch.cuda.memory._record_memory_history(enabled=None)  # forgets the history
#
# The names begin with an underscore: they are not a public interface, and may change.
#
# What people get wrong
# ---------------------
# **Judging by nvidia-smi.** It shows what the driver has given out: PyTorch's segments, the context of CUDA, and other
# programs. ``memory_allocated()`` shows your tensors, and the workspaces of libraries.
#
# **Calling empty_cache in the loop.** It gives PyTorch no more memory, because PyTorch reuses cached segments, and gives them
# back itself before it raises *out of memory*. After ``empty_cache`` it has to ask the driver again, which takes time. The
# call may help if a *different* program waits for the memory, or between two phases with tensors of different sizes.
#
# **Keeping the loss.** A running sum of losses keeps the graph of every step alive, so add up numbers: ``total +=
# loss.item()``. The last cell of this page measures both sums.
#
# Exercise
# --------
# How much do tensors of 1, 512, 513 and 100,000 bytes add to *allocated*? And how many segments do 30 tensors of 1 MiB need?
#
# .. solution::
#
# Each of these sizes is rounded up to the next multiple of 512. Two tensors of 1 MiB fill a segment of 2 MiB, so there are
# 15.

answers = [block(size) for size in (1, 512, 513, 100_000)]
print(answers, 30 * block(MIB) // segment(MIB))
assert answers == [512, 512, 1024, 100_352] and 30 * block(MIB) // segment(MIB) == 15

# %%
# Measured on a GPU
# -----------------
# The rules above, and the step, on a real allocator.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()


def memory():
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def show(what):
    allocated, reserved = memory()
    print(f"{what:<24}{allocated:>16,} allocated{reserved:>16,} reserved")


# sphinx_gallery_start_ignore
import os

# The numbers below are those of the default settings, of the allocator that PyTorch brings, and of a new process.
assert memory() == (0, 0), "something was allocated before this page"
for _setting in ("ALLOC_CONF", "CUDA_ALLOC_CONF", "NO_CUDA_MEMORY_CACHING"):
    assert not os.environ.get(f"PYTORCH_{_setting}"), f"PYTORCH_{_setting} is set"
assert torch.cuda.get_allocator_backend() == "native"
# sphinx_gallery_end_ignore
one = torch.zeros(1, device="cuda")
show("one number")
assert memory() == (512, 2 * MIB)

# sphinx_gallery_start_ignore
for _size in (101 * MIB, 10 * MIB, 9 * MIB, MIB + 1):
    _large = torch.empty(_size, dtype=torch.uint8, device="cuda")
    assert memory() == (512 + block(_size), 2 * MIB + segment(_size))
    del _large
    torch.cuda.empty_cache()
# sphinx_gallery_end_ignore

# %%
# A tensor of 100 MiB gets its own segment. When it is deleted, the segment stays, and the next tensor of that size gets it.

big = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
show("100 MiB")
address = big.data_ptr()
del big
show("deleted")
assert memory() == (512, 102 * MIB)

big = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
show("made again")
print("at the same address:", big.data_ptr() == address)
assert memory() == (512 + 100 * MIB, 102 * MIB) and big.data_ptr() == address

# %%
# ``empty_cache`` gives back the segments in which no tensor lives.

del big
torch.cuda.empty_cache()
show("empty_cache()")
assert memory() == (512, 2 * MIB)

# %%
# The segment of 20 MiB of the first figure:

parts = [torch.empty(2 * MIB, dtype=torch.uint8, device="cuda") for _ in range(10)]
show("ten tensors")
kept = parts[5]
del parts
show("nine deleted")
torch.cuda.empty_cache()
show("empty_cache()")
assert memory() == (512 + 2 * MIB, 22 * MIB)

# %%
# ``memory_snapshot`` lists the segments and their blocks:

blocks = {}
for part in torch.cuda.memory_snapshot():
    total = part["total_size"] // MIB
    blocks[total] = [(piece["size"], piece["state"]) for piece in part["blocks"]]
for total in sorted(blocks):
    print(f"segment of {total} MiB")
    for size, state in blocks[total]:
        print(f"{size:>14,} {state}")
middle = [(10 * MIB, "inactive"), (2 * MIB, "active_allocated"), (8 * MIB, "inactive")]
assert blocks[20] == middle

# %%
# A tensor of 12 MiB fits into neither piece.

twelve = torch.empty(12 * MIB, dtype=torch.uint8, device="cuda")
show("12 MiB more")
assert memory() == (512 + 14 * MIB, 34 * MIB)

del one, kept, twelve
torch.cuda.empty_cache()
show("all deleted, emptied")
assert memory() == (0, 0)

# %%
# The training step. A first one is not counted: the libraries may allocate a workspace then, and keep it. So the columns may
# differ by a constant.

# varies: The workspaces of the libraries differ from GPU to GPU.

model, batch = build("cuda")
optimizer = torch.optim.Adam(model.parameters())
loss_of(model, batch).backward()
optimizer.zero_grad()
torch.cuda.empty_cache()

readings = readings_of(model, batch, torch.cuda.memory_allocated)
table = pd.DataFrame({"measured": readings, "on paper": expected})
change = (table.diff()[1:]).T
assert (change.loc["measured"] / change.loc["on paper"]).between(0.9, 1.1).all()
(table / MIB).round(0).astype(int).rename_axis(columns="MiB, after")

# %%
# Within the step:

# varies: The workspaces of the libraries differ from GPU to GPU, and so do the buffers of single operations.

# figure: Allocated memory over the 24 samples of one measured step. It rises evenly in the forward pass and falls
#   evenly again in backward. A dashed line above all points is the peak.
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
samples = samples_of(model, batch, torch.cuda.memory_allocated)
peak = torch.cuda.max_memory_allocated()
draw(samples, peak, "What forward saves, backward frees (measured)")

# sphinx_gallery_start_ignore
check(samples, before, peak)
# sphinx_gallery_end_ignore

# %%
# The allocator can note each block that it hands out, with the Python stack of that moment, and each one that comes back:

# varies: How many blocks the operations take depends on the GPU and the libraries.

optimizer.zero_grad()
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
torch.cuda.memory._record_memory_history(stacks="python")
loss_of(model, batch).backward()
history = torch.cuda.memory._snapshot()["device_traces"][0]
torch.cuda.memory._record_memory_history(enabled=None)

print(dict(Counter(entry["action"] for entry in history)))

# sphinx_gallery_start_ignore
_actions = Counter(entry["action"] for entry in history)
assert _actions["alloc"] > 5 * BLOCKS and _actions["free_completed"] > 5 * BLOCKS
assert _actions["alloc"] - _actions["free_completed"] == len(list(model.parameters()))
assert not torch.cuda.memory._snapshot()["device_traces"][0]
# sphinx_gallery_end_ignore

# %%
# A block is free when its free is *completed*, so only the gradients stay. Now we replay the history, entry by entry, up to
# the peak.

# varies: The temporary tensors of backward differ from GPU to GPU.

alive, held, highest, at_peak = {}, 0, 0, []
for entry in history:
    if entry["action"] == "alloc":
        alive[entry["addr"]] = entry
        held += entry["size"]
    elif entry["action"] == "free_completed" and entry["addr"] in alive:
        held -= alive.pop(entry["addr"])["size"]
    if held > highest:
        highest, at_peak = held, list(alive.values())

counted = torch.cuda.max_memory_allocated() - before
print(f"replayed: {highest / MIB:,.0f} MiB, counted: {counted / MIB:,.0f} MiB")
assert 0.95 < highest / counted < 1.05

# %%
# The stack of each block tells which layer took it. We look for frames in the files of ``torch/nn/modules``:

# varies: The temporary tensors of backward differ from GPU to GPU.


def layer(entry):
    frames = [Path(frame["filename"]) for frame in entry.get("frames", [])]
    files = {path.name for path in frames if path.parent.name == "modules"}
    return min(files - {"module.py", "container.py"}, default="elsewhere")


holders = Counter()
for entry in at_peak:
    holders[layer(entry)] += entry["size"]
for name, size in holders.most_common():
    print(f"{name:<18} {size / MIB:>8,.0f} MiB {size / highest:>5.0%}")

assert holders["linear.py"] > holders["activation.py"] > holders["normalization.py"]
assert holders["elsewhere"] < 0.3 * highest

# %%
# These are results: the result of a linear layer is what the next layer saves. *Elsewhere* is where no layer was running, as in
# backward, which runs in separate threads.
#
# *Driver* is about what ``nvidia-smi`` shows: ``mem_get_info`` asks the same driver.

# varies: The driver's number includes other programs, and what CUDA takes for itself.


def driver():
    free, total = torch.cuda.mem_get_info()
    return total - free


allocated, reserved = memory()
used = driver()
print(f"allocated {allocated / MIB:>9,.0f} MiB")
print(f"reserved  {reserved / MIB:>9,.0f} MiB")
print(f"driver    {used / MIB:>9,.0f} MiB")
assert reserved > 2 * allocated and used > reserved

# %%
# How often PyTorch asks the driver for memory in one step, and in a step after ``empty_cache``:

# varies: How many segments a step needs depends on the GPU and the libraries.


def asked(action):
    before = torch.cuda.memory_stats()["num_device_alloc"]
    action()
    return torch.cuda.memory_stats()["num_device_alloc"] - before


def step():
    loss_of(model, batch).backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(3):
    step()  # the first ones find out which segments they need
again = asked(step)
torch.cuda.empty_cache()
emptied = asked(step)
print(f"asked the driver: {again} times, after empty_cache {emptied} times")
assert again <= 2 and emptied > 10 + again

# %%
# A sum of losses, and a sum of numbers:

total, before = 0.0, torch.cuda.memory_allocated()
for _ in range(3):
    total = total + loss_of(model, batch)
kept = torch.cuda.memory_allocated() - before
total = total.item()
left = torch.cuda.memory_allocated() - before
print(f"held by the sum: {kept / saved:.1f} times what one step saves")
print(f"held by a number: {left / saved:.1f} times")
assert 2.9 < kept / saved < 3.1 and left < 0.01 * saved

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_no_grad_memory.py`, what a graph costs by the size of the batch.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which operation saves what.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, how long a graph lives.
# - In PyTorch's reference: `Understanding CUDA memory usage <https://docs.pytorch.org/docs/stable/torch_cuda_memory.html>`__
#   and `CUDA memory management <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>`__.
