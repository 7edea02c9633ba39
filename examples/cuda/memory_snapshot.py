r"""
GPU memory: allocated, reserved, empty_cache and the snapshot
=============================================================

PyTorch asks the driver for memory in large pieces, keeps them, and hands out parts of them. So there are two numbers
for the memory in use, and ``nvidia-smi`` sees the larger one. This page shows the difference, what ``empty_cache``
can give back, how memory rises and falls within one training step, and which layers hold it at the peak.
"""

# %%
# Allocated and reserved
# ----------------------
# *Allocated* is what tensors take. *Reserved* is what PyTorch has asked the driver for. Here is a tensor of one
# number, which has 4 bytes.

import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

# %%
# The rest needs a GPU.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

MIB = 2**20


def memory():
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def show(what):
    allocated, reserved = memory()
    print(f"{what:<24}{allocated:>16,} allocated{reserved:>16,} reserved")


one = torch.zeros(1, device="cuda")
show("one number")
assert memory() == (512, 2 * MIB)

# sphinx_gallery_start_ignore
# The numbers below are those of the default settings, and of the allocator that PyTorch brings.
_settings = torch.cuda.memory._snapshot()["allocator_settings"]
assert torch.cuda.get_allocator_backend() == "native"
assert not _settings["expandable_segments"]
# sphinx_gallery_end_ignore

# %%
# A tensor gets a *block*, whose size is a multiple of 512 bytes. Blocks are cut from *segments*, which come from the
# driver. The smallest segment has 2 MiB, and many small tensors share it.
#
# A large tensor gets a segment of its own. When it is deleted, the segment stays, and the next tensor of that size
# gets it again.

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
# This is the *caching allocator*. To ask the driver takes long, and to give memory back to it waits for the GPU, so
# both are avoided. ``empty_cache`` gives back the segments in which no tensor lives.

del big
torch.cuda.empty_cache()
show("empty_cache()")
assert memory() == (512, 2 * MIB)

# %%
# What empty_cache cannot give back
# ---------------------------------
# A segment goes back as a whole or not at all. Ten tensors of 2 MiB share one of 20 MiB. Nine of them are deleted.

parts = [torch.empty(2 * MIB, dtype=torch.uint8, device="cuda") for _ in range(10)]
show("ten tensors")
kept = parts[5]
del parts
show("nine deleted")
torch.cuda.empty_cache()
show("empty_cache()")
assert memory() == (512 + 2 * MIB, 22 * MIB)

# %%
# ``memory_snapshot`` lists the segments and their blocks, in the order of their addresses.

blocks = {}
for segment in torch.cuda.memory_snapshot():
    total = segment["total_size"] // MIB
    blocks[total] = [(block["size"], block["state"]) for block in segment["blocks"]]
for total in sorted(blocks):
    print(f"segment of {total} MiB")
    for size, state in blocks[total]:
        print(f"{size:>14,} {state}")
middle = [(10 * MIB, "inactive"), (2 * MIB, "active_allocated"), (8 * MIB, "inactive")]
assert blocks[20] == middle

# %%
# One small tensor holds 20 MiB. For other tensors the 18 MiB are not lost, but they lie in two pieces. A tensor of 12
# MiB fits into neither, and a new segment is asked for. This is *fragmentation*.

twelve = torch.empty(12 * MIB, dtype=torch.uint8, device="cuda")
show("12 MiB more")
assert memory() == (512 + 14 * MIB, 34 * MIB)

del one, kept, twelve
torch.cuda.empty_cache()
show("all deleted, emptied")
assert memory() == (0, 0)

# %%
# One training step
# -----------------
# Twelve blocks of layer norm, linear, GELU and linear, as in a transformer without its attention. Saved for backward
# are: the inputs of the norm and of the first linear layer, and the four times wider inputs of GELU and of the second
# one. So a block should hold 10 tensors of the size of the batch.

TOKENS, WIDTH, BLOCKS = 8192, 1024, 12


def block():
    wide, narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
    return nn.Sequential(nn.LayerNorm(WIDTH), wide, nn.GELU(), narrow)


torch.manual_seed(0)
model = nn.Sequential(*(block() for _ in range(BLOCKS))).cuda()
optimizer = torch.optim.Adam(model.parameters())
batch = torch.randn(TOKENS, WIDTH, device="cuda")


def loss_of(batch):
    return model(batch).square().mean()


# %%
# A first step is not counted, because the libraries behind the products allocate a workspace then, and keep it. After
# it, the memory is read between the parts of a step. The allocator keeps its books on the CPU, so no reading has to
# wait for the GPU.

# varies: The workspaces of the libraries differ from GPU to GPU.

loss_of(batch).backward()
optimizer.zero_grad()
torch.cuda.empty_cache()

readings = {"before": torch.cuda.memory_allocated()}
loss = loss_of(batch)
readings["forward"] = torch.cuda.memory_allocated()
loss.backward()
readings["backward"] = torch.cuda.memory_allocated()
optimizer.step()
readings["step"] = torch.cuda.memory_allocated()
optimizer.zero_grad()
readings["zero_grad"] = torch.cuda.memory_allocated()

weights = sum(weight.nbytes for weight in model.parameters())
saved = 10 * BLOCKS * batch.nbytes
table = pd.DataFrame({"allocated": readings})
table["change"] = table["allocated"].diff().fillna(0)
table["expected"] = [0, saved, weights - saved, 2 * weights, -weights]
change = table["change"][1:] / table["expected"][1:]
assert change.between(0.95, 1.05).all()
(table / MIB).round(0).astype(int).rename_axis(columns="MiB, after")

# %%
# - The **forward pass** adds what the graph saves.
# - **backward** frees that, and leaves a gradient for each weight.
# - The first **step** of Adam adds two averages for each weight, and they stay.
# - **zero_grad** frees the gradients.

# %%
# Within the step
# ---------------
# Hooks look more closely: one on each block, called when its forward pass is done, and one on its output, called when
# backward arrives there.

samples = []


def watch(number, module):
    def after_forward(module, inputs, output):
        samples.append(("forward", number, torch.cuda.memory_allocated()))
        output.register_hook(before_backward)

    def before_backward(gradient):
        samples.append(("backward", number, torch.cuda.memory_allocated()))

    return module.register_forward_hook(after_forward)


handles = [watch(number, module) for number, module in enumerate(model)]
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
loss_of(batch).backward()
peak = torch.cuda.max_memory_allocated()
for handle in handles:
    handle.remove()

# %%
# The peak is not where forward ends. It is a little later, at the beginning of backward: the first gradients are
# there already, and hardly anything has been freed.

# varies: The workspaces of the libraries differ from GPU to GPU, and so do the buffers of single operations.

# figure: Allocated memory over the 24 samples of one step. It rises evenly with each of the twelve blocks in the
#   forward pass and falls evenly again in backward, to a little above where it began. A dashed line above all points
#   is the peak.
fig, ax = plt.subplots(figsize=(7, 3.8))
styles = {"forward": ("o-", "#2563eb"), "backward": ("s-", "#c2410c")}
for part, (style, color) in styles.items():
    places = [place for place, sample in enumerate(samples) if sample[0] == part]
    heights = [samples[place][2] / 2**30 for place in places]
    ax.plot(places, heights, style, color=color, label=part)
ax.axhline(peak / 2**30, linestyle="--", color="#64748b", label="peak")
ax.set_xticks(range(len(samples)), [number for _, number, _ in samples], fontsize=8)
ax.set_ylim(0, 1.1 * peak / 2**30)
ax.set_xlabel("block that was done (forward), or that comes next (backward)")
ax.set_ylabel("allocated, GiB")
ax.set_title("What forward saves, backward frees")
ax.legend(loc="lower center")
fig.tight_layout()

# sphinx_gallery_start_ignore
_up = [size for part, _, size in samples if part == "forward"]
_down = [size for part, _, size in samples if part == "backward"]
assert len(_up) == len(_down) == BLOCKS
_steps = [high - low for low, high in zip([before, *_up[:-1]], _up, strict=True)]
assert all(0.9 < step / (10 * batch.nbytes) < 1.1 for step in _steps)
assert _down == sorted(_down, reverse=True) and len(set(_down)) == BLOCKS
assert peak > max(_up) and peak >= max(_down) and _down[0] > 0.9 * peak
assert before < _down[-1] < before + 0.3 * (peak - before)
_order = [number for _, number, _ in samples]
assert _order == [*range(BLOCKS), *reversed(range(BLOCKS))]
# sphinx_gallery_end_ignore

# %%
# Who holds it?
# -------------
# The allocator can note each block that it hands out, with the Python stack of that moment, and each one that comes
# back. The names begin with an underscore: they are not a public interface, and may change.

# varies: How many blocks the operations take depends on the GPU and the libraries.

optimizer.zero_grad()
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
torch.cuda.memory._record_memory_history(stacks="python")
loss_of(batch).backward()
history = torch.cuda.memory._snapshot()["device_traces"][0]
torch.cuda.memory._record_memory_history(enabled=None)

print(dict(Counter(entry["action"] for entry in history)))

# sphinx_gallery_start_ignore
_actions = Counter(entry["action"] for entry in history)
assert _actions["alloc"] > 5 * BLOCKS and _actions["free_completed"] > 5 * BLOCKS
# sphinx_gallery_end_ignore

# %%
# ``_dump_snapshot(path)`` writes the same to a file, for the viewer on pytorch.org/memory_viz. Here it is read in
# Python: replayed entry by entry, it gives the blocks that were there at the peak.

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
# The stack of each block tells which layer took it. Its frames lie in the files of ``torch/nn/modules``.

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
# These are results, not inputs: a linear layer's result is what the next layer saves. *Elsewhere* is where no layer
# was running, as in backward, which has threads of its own.

# %%
# What people get wrong
# ---------------------
# **Judging by nvidia-smi.** It shows what the driver has given away, to PyTorch and to others. ``mem_get_info`` asks
# the same driver. After the step most of the reserved memory is free for the next one.

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
# **Calling empty_cache in the loop.** PyTorch gets no more memory by it: it would have used the cached segments
# itself. It has to ask the driver for all of them again. ``memory_stats`` counts how often it asked.

# varies: How many segments a step needs depends on the GPU and the libraries.


def asked(action):
    before = torch.cuda.memory_stats()["num_device_alloc"]
    action()
    return torch.cuda.memory_stats()["num_device_alloc"] - before


def step():
    loss_of(batch).backward()
    optimizer.step()
    optimizer.zero_grad()


step()
again = asked(step)
torch.cuda.empty_cache()
emptied = asked(step)
print(f"asked the driver: {again} times, after empty_cache {emptied} times")
assert emptied > 10 + again

# %%
# It helps where *another* program waits for the memory, or where fragments of one phase stand in the way of the next.

# %%
# **Keeping the loss.** A running sum of losses keeps the graph of every step alive, if no backward frees what the
# graphs have saved. Add up numbers.

total, before = 0.0, torch.cuda.memory_allocated()
for _ in range(3):
    total = total + loss_of(batch)
kept = torch.cuda.memory_allocated() - before
total = total.item()
left = torch.cuda.memory_allocated() - before
print(f"held by the sum: {kept / saved:.1f} times what one step saves")
print(f"held by a number: {left / saved:.1f} times")
assert 2.9 < kept / saved < 3.1 and left < 0.01 * saved

# %%
# Exercise
# --------
# How much do tensors of 1, 512, 513 and 100,000 bytes add to *allocated*? Predict the four numbers, then measure.
#
# .. solution::
#
# Each size is rounded up to the next multiple of 512.

sizes, taken = [1, 512, 513, 100_000], []
for size in sizes:
    before = torch.cuda.memory_allocated()
    tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
    taken.append(torch.cuda.memory_allocated() - before)
    del tensor
    print(f"{size:>7,} bytes take {taken[-1]:>7,}")
assert taken == [512 * -(-size // 512) for size in sizes] == [512, 512, 1024, 100_352]

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_cuda_cuda_profiler.py`, where the time goes.
# - Next: :ref:`sphx_glr_gallery_cuda_checkpoint_and_precision.py`, two ways to a lower peak.
# - :ref:`sphx_glr_gallery_cuda_no_grad_memory.py`, what a graph costs by the size of the batch.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which operation saves what.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, how long a graph lives.
# - In PyTorch's reference: `Understanding CUDA memory usage
#   <https://docs.pytorch.org/docs/stable/torch_cuda_memory.html>`__ and
#   `CUDA memory management <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>`__.
