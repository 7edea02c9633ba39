r"""
pin_memory and non_blocking: what is safe, and what reads old data
==================================================================

.. in-short::

   With ``DataLoader(..., pin_memory=True)`` and ``x.to("cuda", non_blocking=True)``, Python continues while the copy runs, and
   you may compute with the result at once. But wait before you write into the pinned ``x`` again, and before you read the
   result of ``t.to("cpu", non_blocking=True)``. Without the wait you may get wrong numbers without an error. ``.cpu()`` and
   ``.item()`` wait for you.
"""

# %%
# The problem: the GPU waits for the batch
# ----------------------------------------
# Each step of a training loop copies a batch to the GPU and computes with it. Three ways to copy, for six batches of 64 MiB:
#
# - **pageable**: from ordinary memory, as in ``x.to("cuda")``. The driver copies piece by piece through its own buffer.
# - **pinned**: from memory that the operating system may not move. ``x.pin_memory()`` makes such a copy, and the GPU reads it
#   directly.
# - **pinned, two streams**: a second queue copies the next batch while the first queue computes.
#
# .. how-measured:: a copy takes its bytes divided by a rate, and the steps of a queue follow each other. We assume 10 GB/s
#    pageable, 50 GB/s pinned, and 2 ms of computing for each batch.

import matplotlib.pyplot as plt

BATCH, WORK = 64 * 2**20, 2.0  # bytes, and ms of computing
PAGEABLE, PINNED = BATCH / 10e6, BATCH / 50e6  # ms for one copy


def schedule(copy, streams, batches=6):
    """When copies and computations begin and end, in ms."""
    copies, works, copied, worked = [], [], 0.0, 0.0
    for _ in range(batches):
        start = copied if streams == 2 else max(copied, worked)
        copied = start + copy
        copies.append((start, copy))
        start = max(copied, worked)  # the batch must be there
        worked = start + WORK
        works.append((start, WORK))
    return copies, works


ways = {
    "pageable": schedule(PAGEABLE, 1),
    "pinned": schedule(PINNED, 1),
    "pinned, two streams": schedule(PINNED, 2),
}


def draw_schedule():
    fig, ax = plt.subplots(figsize=(7, 2.4))
    for row, (copies, works) in enumerate(ways.values()):
        ax.broken_barh(copies, (row, 0.35), facecolors="#c2410c", edgecolor="white")
        ax.broken_barh(
            works, (row - 0.35, 0.35), facecolors="#2563eb", edgecolor="white"
        )
    ax.set_yticks(range(len(ways)), ways)
    ax.text(16, 2.1, "copies", color="#c2410c")
    ax.text(16, 1.7, "computing", color="#2563eb")
    ax.set(ylim=(-0.6, 2.6), xlabel="ms", title="Six batches (on paper)")
    fig.tight_layout()


# %%
# The time line:

import sys
import time

import pandas as pd
import torch
from torch.utils.data import DataLoader

# figure: Three rows over time, computed from the assumed rates. From pageable memory the copies take most of the 52 ms.
#   From pinned memory copies and computations alternate, and end at 20 ms. With two streams the copies run beside the
#   computations, which follow each other without a gap, and all ends at 13 ms.
draw_schedule()

# %%
# How long the six batches take:

total = {name: works[-1][0] + WORK for name, (_, works) in ways.items()}
for name, ms in total.items():
    print(f"{name:<20} {ms:5.1f} ms, computing {6 * WORK / ms:.0%} of it")
assert 50 < total["pageable"] < 55 and 19 < total["pinned"] < 21
assert 13 < total["pinned, two streams"] < 14

# %%
# A queue of the GPU is called a *stream*. By default PyTorch uses one, and its work runs in order. So with
# ``non_blocking=True`` the copy and the computing still take turns, as the row *pinned* shows. But *Python* does not wait: it
# can prepare and launch what comes next.
#
# The idea: a copy waits in a queue
# ---------------------------------
# With pinned memory, a non-blocking copy is only *in the queue* when the call returns. So later work of the same queue may use
# the result at once, but Python must wait before it writes into the source or reads a result on the CPU. Here is a small queue
# on the CPU that behaves in the same way:

queue = []


def copy_later(x):
    result = torch.zeros_like(x)
    queue.append(lambda: result.copy_(x))
    return result


def synchronize():
    while queue:
        queue.pop(0)()


# %%
# If you read the result before the copy has run, you get an old number, without an error. (It is 0 in this model. On a GPU it
# is whatever was in that memory, for example the loss of an earlier step.)

loss = torch.tensor(5.0)
logged = copy_later(loss)  # as loss.to("cpu", non_blocking=True)
early = logged.item()
synchronize()
print("read at once:", early, "  after synchronize():", logged.item())
assert early == 0 and logged == 5

# %%
# The copy reads its source when its turn comes. If you have filled the buffer again, it has the next batch:

buffer = torch.zeros(2)  # pinned, and used for each batch
batches = []
for number in (1.0, 2.0, 3.0):
    buffer.fill_(number)
    batches.append(copy_later(buffer))  # as buffer.to("cuda", non_blocking=True)
synchronize()
print([batch.tolist() for batch in batches])
assert all(batch.tolist() == [3, 3] for batch in batches)

# %%
# But you may compute with the result at once, because in the same stream that work runs after the copy:

batch = copy_later(torch.tensor([1.0, 2.0]))
squares = torch.zeros(2)
queue.append(lambda: torch.mul(batch, batch, out=squares))  # as batch * batch
synchronize()
print(squares)
assert squares.tolist() == [1, 4]

# %%
# What is safe in one stream
# --------------------------
# The rules:

table = pd.DataFrame(
    [
        ['x.to("cuda", non_blocking=True)', "compute with the result", "yes"],
        ['x.to("cuda", non_blocking=True)', "del x", "yes"],
        ['x.to("cuda", non_blocking=True)', "x.fill_(7), x pinned", "no"],
        ['t.to("cpu", non_blocking=True)', "read the result", "no"],
        ["pinned.copy_(t, non_blocking=True)", "read pinned", "no"],
        ["pageable.copy_(t, non_blocking=True)", "read pageable", "yes"],
        ["t.cpu(), t.item()", "read the result", "yes"],
    ],
    columns=["after", "you", "safe without waiting?"],
)
table.set_index("after")

# %%
# With ordinary ("pageable") memory, *yes* is what we measured below. CUDA's documentation says only that such a copy *may*
# wait. To be safe, leave out ``non_blocking=True``.
#
# Autograd records the copy as ``ToCopyBackward0``, which copies the gradient back. A change of the dtype is recorded as the
# same node, so you can see it without a GPU:

w = torch.tensor([1.0, 2.0], requires_grad=True)
moved = w.to(torch.float64)  # or w.to("cuda", non_blocking=True)
loss = (moved * moved).sum()
loss.backward()

# graph: loss -- The copy is a node of the graph, and backward goes through it to w

print(moved.grad_fn.name(), w.grad, w.grad.dtype)
assert moved.grad_fn.name() == "ToCopyBackward0"
assert w.grad.tolist() == [2, 4] and w.grad.dtype == torch.float32

# %%
# What people get wrong
# ---------------------
# **Reading too early.** The log then shows an earlier loss. Call ``loss.item()``, or wait.
#
# **Filling the same buffer again.** The GPU may get the wrong batch. By default ``DataLoader`` makes new tensors for each
# batch; the danger is a pinned buffer that you fill yourself.
#
# **Waiting before you compute.** In the same stream you need no wait.
#
# Exercise
# --------
# Repair the loop with the buffer, first with one buffer, then with two buffers so that you wait less often.
#
# .. solution::
#
# Wait for the copy before you fill its buffer again. With two buffers you wait for the copy before the last one, which is more
# likely to be done. On a GPU, record a ``torch.cuda.Event()`` after each copy, and call its ``synchronize()`` before you fill
# the buffer: you then wait only for this copy.

for count in (1, 2):
    buffers = [torch.zeros(2) for _ in range(count)]
    batches, waits = [], 0
    for step, number in enumerate((1.0, 2.0, 3.0)):
        if step >= count:  # this buffer may still be in use
            queue.pop(0)()  # as event.synchronize()
            waits += 1
        buffers[step % count].fill_(number)
        batches.append(copy_later(buffers[step % count]))
    synchronize()
    print(count, "buffers:", [b[0].item() for b in batches], "waited", waits, "times")
    assert [b[0].item() for b in batches] == [1, 2, 3] and waits == 3 - count

# %%
# Measured on a GPU
# -----------------
# Which tensors are pinned, which calls wait, what is read too early, and what it costs.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

x = torch.ones(1000)
pinned = x.pin_memory()
on_gpu = x.to("cuda")
tensors = {
    "x": x,
    "x.pin_memory()": pinned,
    "torch.empty(9, pin_memory=True)": torch.empty(9, pin_memory=True),
    "pinned[:5]": pinned[:5],
    "pinned + 1": pinned + 1,
    "on_gpu.cpu()": on_gpu.cpu(),
    'on_gpu.to("cpu", non_blocking=True)': on_gpu.to("cpu", non_blocking=True),
}
for name, tensor in tensors.items():
    print(f"{name:<38}{tensor.is_pinned()}")
found = [tensor.is_pinned() for tensor in tensors.values()]
assert found == [False, True, True, True, False, False, True]

# %%
# Does a call wait for the GPU? Large products go into the queue, and an event behind them. If the event has happened when the
# call returns, then the call has waited.

big = torch.randn(8192, 8192, device="cuda")
product = torch.empty_like(big)


def busy():
    for _ in range(5):
        torch.mm(big, big, out=product)


def waits(call):
    call()  # the first call loads kernels and allocates, which may wait
    torch.cuda.synchronize()
    busy()
    queued = torch.cuda.Event()
    queued.record()
    call()
    return queued.query()


# %%
# For three sizes:

# varies: Another GPU, driver or version of PyTorch may wait elsewhere.


def copies(size):
    x = torch.ones(size // 4)
    pinned, t = x.pin_memory(), x.to("cuda")
    return {
        'x.to("cuda")': lambda: x.to("cuda"),
        'x.to("cuda", non_blocking=True)': lambda: x.to("cuda", non_blocking=True),
        'pinned.to("cuda")': lambda: pinned.to("cuda"),
        'pinned.to("cuda", non_blocking=True)': (
            lambda: pinned.to("cuda", non_blocking=True)
        ),
        "t.cpu()": lambda: t.cpu(),
        't.to("cpu", non_blocking=True)': lambda: t.to("cpu", non_blocking=True),
        "x.copy_(t, non_blocking=True)": lambda: x.copy_(t, non_blocking=True),
        "pinned.copy_(t, non_blocking=True)": (
            lambda: pinned.copy_(t, non_blocking=True)
        ),
    }


sizes = {"4 KiB": 2**12, "1 MiB": 2**20, "16 MiB": 2**24}
waited = pd.DataFrame(
    {
        name: {text: waits(call) for text, call in copies(size).items()}
        for name, size in sizes.items()
    }
)
# sphinx_gallery_start_ignore
assert waited.loc[['x.to("cuda")', 'pinned.to("cuda")', "t.cpu()"]].all(axis=None)
assert waited.loc["x.copy_(t, non_blocking=True)"].all()
for _name in (
    'pinned.to("cuda", non_blocking=True)',
    't.to("cpu", non_blocking=True)',
    "pinned.copy_(t, non_blocking=True)",
):
    assert not waited.loc[_name].any(), _name
# sphinx_gallery_end_ignore
waited.replace({True: "waits", False: "no"}).rename_axis(columns="call")

# %%
# You need both: from pinned memory, a call without ``non_blocking=True`` waits. From ordinary memory (second row),
# ``non_blocking=True`` may wait or not, depending on the size.
#
# **Reading too early**, in a loop that logs its loss. The GPU is a little behind, as it is in training:

# varies: What stands in the memory that is read too early depends on what was there before.

early, late = [], []
for step in range(1, 6):
    busy()
    loss = torch.full((1,), float(step), device="cuda")
    logged = loss.to("cpu", non_blocking=True)
    early.append(logged.item())
    torch.cuda.synchronize()
    late.append(logged.item())
print("read at once:         ", early)
print("after synchronize():  ", late)
assert late == [1, 2, 3, 4, 5] and early != late

# %%
# **Filling the buffer again**, in pinned and in ordinary memory:


def refill(x, wait=False):
    """What the GPU gets from ones that become 7 after the call."""
    x.fill_(1)
    torch.cuda.synchronize()
    busy()
    batch = x.to("cuda", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    if wait:
        copied.synchronize()
    x.fill_(7)
    return batch[0].item()


x = torch.ones(1_000_000)
pinned = x.pin_memory()
refill(pinned)  # once without looking: the first call loads kernels
print("pinned:          ", refill(pinned))
print("pinned, waiting: ", refill(pinned, wait=True))
print("ordinary memory: ", refill(x))
assert refill(pinned) == 7 and refill(pinned, wait=True) == 1 == refill(x)

# sphinx_gallery_start_ignore
_source = torch.ones(1_000_000).pin_memory()
busy()
_copy = _source.to("cuda", non_blocking=True)
_where = _source.data_ptr()
del _source
_next = torch.full((1_000_000,), 7.0).pin_memory()
assert _next.data_ptr() != _where and _copy[0].item() == 1  # not reused too early
# sphinx_gallery_end_ignore

# %%
# From ordinary memory, the driver had read the values before the call returned. (A ``del`` of the pinned tensor is safe too:
# PyTorch does not use its memory again before the copy is done.)
#
# What the copies cost. *Python goes on* is when the call returns, *done* is when the GPU is done:


def milliseconds(call, times=3):
    """Until Python goes on, and until the GPU is done: the best of some runs."""
    runs = []
    for _ in range(times + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        value = call()
        returned = time.perf_counter() - start
        torch.cuda.synchronize()
        runs.append((time.perf_counter() - start, returned))
        del value
    done, returned = min(runs[1:])  # the first one allocates
    return returned * 1e3, done * 1e3


# varies: Times depend on the machine and on its load.

SIZE = 2**28
calls = copies(SIZE)
x = torch.ones(SIZE // 4)
calls['x.pin_memory().to("cuda")'] = lambda: x.pin_memory().to("cuda")
times = pd.DataFrame({name: milliseconds(call) for name, call in calls.items()}).T
times.columns = ["Python goes on, ms", "done, ms"]
times["GB/s"] = SIZE / times["done, ms"] / 1e6
# sphinx_gallery_start_ignore
_done = times["done, ms"]
assert _done['pinned.to("cuda")'] < _done['x.to("cuda")'] / 2
_row = times.loc['pinned.to("cuda", non_blocking=True)']
assert _row.iloc[0] < _row.iloc[1] / 5
assert _done["pinned.copy_(t, non_blocking=True)"] < _done["t.cpu()"] / 3
# sphinx_gallery_end_ignore
times.round(2).rename_axis(columns="256 MiB")

# %%
# On this machine pinned memory is several times as fast. But the last row gains nothing, because pinning copies ``x`` too.
# ``t.cpu()`` is the slowest: it makes a new CPU tensor each time. In a loop, copy into a pinned tensor that you keep, and wait
# before you read it.
#
# **Copies beside the computations** need a second stream. ``wait_stream`` makes one queue wait for the other, and
# ``record_stream`` tells the allocator that a tensor made in one stream is used in another:

side = torch.cuda.Stream()
main = torch.cuda.current_stream()
weight = torch.randn(4096, 4096, device="cuda")
pageable = [torch.ones(2**24) for _ in range(6)]  # 64 MiB each
batches = [batch.pin_memory() for batch in pageable]


def compute(batch):
    return (weight @ weight).sum() + batch.sum()


def one_stream(batches):
    for batch in batches:
        compute(batch.to("cuda", non_blocking=True))


def load(batch):
    with torch.cuda.stream(side):
        return batch.to("cuda", non_blocking=True)


def two_streams(batches):
    following = load(batches[0])
    for number in range(1, len(batches) + 1):
        main.wait_stream(side)  # the batch must be there
        batch = following
        batch.record_stream(main)
        if number < len(batches):
            following = load(batches[number])
        compute(batch)


# %%
# Six batches, in milliseconds until the GPU is done:

# varies: Times depend on the machine and on its load.

# figure: Bars of measured times for six batches: computing alone, copies alone from pinned memory, pageable in one stream,
#   pinned in one stream, pinned in two streams. Two streams take less than one stream.
there = batches[0].to("cuda")
runs = {
    "computing alone": lambda: [compute(there) for _ in batches],
    "copies alone, pinned": lambda: [batch.to("cuda") for batch in batches],
    "pageable": lambda: one_stream(pageable),
    "pinned": lambda: one_stream(batches),
    "pinned, two streams": lambda: two_streams(batches),
}
measured = pd.Series({name: milliseconds(run)[1] for name, run in runs.items()})
ax = measured.plot.barh(figsize=(7, 2.4), color=2 * ["#64748b"] + 3 * ["#2563eb"])
ax.bar_label(ax.containers[0], fmt="%.0f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="ms", title="Six batches of 64 MiB (measured)")
ax.margins(x=0.1)
ax.figure.tight_layout()
assert measured["pinned, two streams"] < 0.97 * measured["pinned"]
assert measured["pinned"] < measured["pageable"]

# %%
# ``DataLoader(pin_memory=True)`` pins tensors inside dicts, lists and tuples. Your own class needs a method ``pin_memory``:


class Batch:
    def __init__(self, samples):
        self.x = torch.stack(samples)


class PinnableBatch(Batch):
    def pin_memory(self):
        self.x = self.x.pin_memory()
        return self


samples = list(torch.randn(8, 3))
nested = next(iter(DataLoader([{"a": s, "b": [s]} for s in samples], pin_memory=True)))
own = next(iter(DataLoader(samples, pin_memory=True, collate_fn=Batch)))
with_method = next(iter(DataLoader(samples, pin_memory=True, collate_fn=PinnableBatch)))
print("dict and list:      ", nested["a"].is_pinned(), nested["b"][0].is_pinned())
print("a class:            ", own.x.is_pinned())
print("with pin_memory():  ", with_method.x.is_pinned())
assert nested["a"].is_pinned() and nested["b"][0].is_pinned()
assert not own.x.is_pinned() and with_method.x.is_pinned()

# %%
# **Autograd.** This backward copies the gradient to the CPU and waits, so ``w.grad`` is right when ``backward()`` returns:

w = torch.ones(1_000_000, requires_grad=True)


def step():
    w.grad = None
    (w.to("cuda", non_blocking=True) * 2).sum().backward()


print("backward waits:", waits(step), "  w.grad:", w.grad.mean().item(), w.grad.device)
assert waits(step) and w.grad.mean() == 2 and w.grad.is_cpu

# %%
# ``pin_memory()`` of a tensor that requires grad is recorded too. The result is not a leaf, so its ``grad`` stays None. For a
# pinned leaf, call ``requires_grad_()`` last:

no_leaf = torch.ones(3, requires_grad=True).pin_memory()
leaf = torch.ones(3).pin_memory().requires_grad_()
print(no_leaf.is_leaf, no_leaf.grad_fn.name(), "  ", leaf.is_leaf, leaf.is_pinned())
assert not no_leaf.is_leaf and no_leaf.grad_fn.name() == "PinMemoryBackward0"
assert leaf.is_leaf and leaf.is_pinned()

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_devices.py`, more calls that wait.
# - :ref:`sphx_glr_gallery_training_data_loading.py`, what a ``DataLoader`` does with your samples.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`: ``save_on_cpu(pin_memory=True)`` keeps what backward needs in pinned
#   memory.
# - In PyTorch's tutorials: `A guide on good usage of non_blocking and pin_memory
#   <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>`__. In its notes: `Use pinned memory buffers
#   <https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers>`__.
