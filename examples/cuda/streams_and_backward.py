r"""
CUDA streams and backward: where it runs, and when a gradient may be read
=========================================================================

.. in-short::

   Backward of each operation runs in the stream in which its forward ran, and ``backward()`` makes the stream from which you
   call it wait for the gradients. In a different stream you may read a gradient too early, without an error. Before you use a
   tensor in a second stream, make that stream wait: ``side.wait_stream(torch.cuda.current_stream())``. If the tensor may be
   freed while the second stream still uses it, call ``tensor.record_stream(side)``.
"""

# %%
# The problem: two branches, side by side
# ---------------------------------------
# A *stream* is a queue of the GPU. Work in one stream runs in order. Work in two streams may run at the same time, in any
# order. A network with two branches could use that:
#
# .. code-block:: python
#
#    side = torch.cuda.Stream()
#    side.wait_stream(torch.cuda.current_stream())  # x must be there
#    a = branch_1(x)
#    with torch.cuda.stream(side):
#        b = branch_2(x)
#    torch.cuda.current_stream().wait_stream(side)  # b must be there
#    loss = (a + b).sum()
#    loss.backward()
#
# You write the two waits of forward. Autograd adds those of backward, where a gradient goes from one stream to the other.
#
# .. how-measured:: on paper. Each branch takes 3 ms forward and 3 ms backward, all else 1 ms. A stream begins its next work
#    when it is free; wait does what wait_stream does.

import matplotlib.pyplot as plt


def schedule(second):
    """What runs when; the second branch runs in the stream ``second``."""
    free, log = {"default": 0.0, "side": 0.0}, []

    def run(stream, name, ms):
        log.append((stream, name, free[stream], ms))
        free[stream] += ms

    def wait(stream, other):
        free[stream] = max(free[stream], free[other])

    for prime in ("", "'"):  # forward, and backward in the opposite order
        run("default", "loss'" if prime else "x", 1)
        wait(second, "default")
        run("default", f"a{prime}", 3)
        run(second, f"b{prime}", 3)
        wait("default", second)
        run("default", "x'" if prime else "loss", 1)
    return log, max(free.values())


def draw(log):
    fig, ax = plt.subplots(figsize=(7, 1.9))
    for stream, name, start, ms in log:
        row = ["side", "default"].index(stream)
        color = "#c2410c" if name.endswith("'") else "#2563eb"
        ax.broken_barh(
            [(start, ms)], (row - 0.3, 0.6), facecolors=color, edgecolor="white"
        )
        ax.text(start + ms / 2, row, name, color="white", ha="center", va="center")
    ax.set_yticks([0, 1], ["side", "default"])
    ax.set(xlabel="ms", title="Two branches, forward and backward (on paper)")
    fig.tight_layout()


two, one = schedule("side"), schedule("default")
assert one[1] == 16 and two[1] == 10

# %%
# The prime marks backward:

import sys
import textwrap
import threading
import time
import warnings

import pandas as pd
import torch

# figure: A time line with two lanes, computed on paper. Forward: x in the default stream, then a in the default stream beside b
#   in the side stream, then the loss. Backward mirrors it: the loss, then a in the default stream beside b in the side stream.
draw(two[0])
print(f"one stream: {one[1]:.0f} ms, two streams: {two[1]:.0f} ms")

# %%
# Who may read the gradient?
# --------------------------
# Three streams matter: the one of forward, the one in which you call ``backward()``, and the one in which you read ``w.grad``,
# for example with an optimizer. Two rules decide:
#
# 1. Backward of an operation runs in the stream of its forward.
# 2. ``backward()`` makes the stream in which you call it wait for all gradients.
#
# What follows if you add no wait yourself:


def on_paper(forward, call, read):
    """Whether ``read`` finds the gradient, by the two rules."""
    free = {"default": 0.0, "side": 0.0, "third": 0.0}
    free[forward] += 25.0  # rule 1: backward takes 25 ms in this stream
    ready = free[forward]
    free[call] = max(free[call], ready)  # rule 2
    return "right" if free[read] >= ready else "too early"


STREAMS = ("default", "side", "third")


def table_of(reads):
    rows = {}
    for forward in STREAMS[:2]:
        for call in STREAMS:
            found = [reads(forward, call, read) for read in STREAMS]
            rows[f"forward {forward}, backward() {call}"] = found
    return pd.DataFrame(rows, index=[f"read in {name}" for name in STREAMS]).T


expected = table_of(on_paper)

# sphinx_gallery_start_ignore
assert (expected == "too early").sum().sum() == 8
assert expected.loc["forward side, backward() default"].tolist() == [
    "right",
    "right",
    "too early",
]
assert expected.loc["forward side, backward() side"].tolist() == [
    "too early",
    "right",
    "too early",
]
# sphinx_gallery_end_ignore
expected

# %%
# The dangerous row is *forward side, backward() side*: forward and backward are inside ``with torch.cuda.stream(side):``, and
# the optimizer's step comes after it, in the default stream. The fix is a wait before the optimizer's step:
# ``torch.cuda.current_stream().wait_stream(side)``.
#
# Rely on rule 2: read gradients in the stream in which you call ``backward()``, or in one that waits for it. (The stream of
# forward is *right* in the table too. But if an older graph of ``w`` is still alive, the gradient may be added to ``w.grad`` in
# a different stream.)
#
# What people get wrong
# ---------------------
# **Forgetting the waits of forward.** Autograd adds waits only in backward, so those of forward are yours.
#
# **Reading the loss in a different stream.** ``loss.item()`` waits for the *current* stream. If the loss is computed in
# ``side`` and you call ``item()`` in the default stream, you may get what was in that memory before.
#
# **Freeing too early.** PyTorch's allocator may give the memory of a freed tensor to the next tensor of the same stream at
# once. Within one stream that is right, because it runs in order. But if a second stream still reads the old tensor, it may
# find the values of the new one. ``record_stream`` tells the allocator to wait for the second stream too. (The same can happen
# to the tensors that a graph holds, when ``backward()`` frees them.)
#
# A model of the allocator and the second stream, with a list as the memory:

memory = [3.0]  # x, made in the default stream
later = []  # what the side stream has still to do


def side_computes():
    later.append(lambda: print("the side stream computed with", memory[0]))


side_computes()  # launched, not done
free_block = 0  # del x: the allocator may use the block again
memory[free_block] = 7.0  # c, the next tensor of the default stream
later.pop()()
assert memory[0] == 7

# %%
# **Expecting the calling thread.** For operations on a GPU, autograd uses a separate thread, as measured below. That thread
# does not see what you keep in ``threading.local()``. On the CPU, backward runs in the thread that calls ``backward()``:

threads = []
w = torch.ones(3, requires_grad=True)
w.register_hook(lambda gradient: threads.append(threading.get_ident()))
(w * 2).sum().backward()
print("hook in the calling thread:", threads == [threading.get_ident()])
assert threads == [threading.get_ident()]

# %%
# Exercise
# --------
# A training loop runs forward and ``backward()`` in ``side``, and the optimizer in ``third``. Which wait is missing? Is it
# enough to call ``backward()`` outside ``side``?
#
# .. solution::
#
# ``third.wait_stream(side)`` before the optimizer's step. Calling ``backward()`` in the default stream does not help, because
# ``third`` still does not wait. Calling it in ``third`` does:

for call in STREAMS:
    print(f"backward() in {call:<8} read in third: {on_paper('side', call, 'third')}")
assert on_paper("side", "third", "third") == "right"
assert on_paper("side", "side", "third") == on_paper("side", "default", "third")
assert on_paper("side", "side", "third") == "too early"

# %%
# Measured on a GPU
# -----------------
# Where backward runs, who reads too early, what is freed too early, and what you gain with two streams.
# ``torch.cuda._sleep(n)``, a private function, lets a stream wait for n cycles.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

# sphinx_gallery_start_ignore
_has_switch = hasattr(
    torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"
)
if _has_switch:
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
# sphinx_gallery_end_ignore
CYCLES = 50_000_000  # about 25 ms at 2 GHz


class Slow(torch.autograd.Function):
    """x * 2, slow in backward."""

    stream = thread = None  # of the last backward

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        Slow.stream = torch.cuda.current_stream()
        Slow.thread = threading.get_ident()
        torch.cuda._sleep(CYCLES)
        return gradient * 2


side = torch.cuda.Stream()
default = torch.cuda.default_stream()
for forward, call in ((default, side), (side, default)):
    w = torch.ones(1000, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        loss = Slow.apply(w).sum()
    torch.cuda.synchronize()
    with torch.cuda.stream(call):
        loss.backward()
    torch.cuda.synchronize()
    print("forward in", "side:   " if forward == side else "default:", end=" ")
    print("backward in side:", Slow.stream == side, end="  ")
    print("in another thread:", Slow.thread != threading.get_ident())
    assert (Slow.stream == forward) and Slow.thread != threading.get_ident()

# %%
# The first rule holds in both cases, and backward runs in a separate thread. Now the 18 combinations of the table. ``w.grad``
# is zero before, and read with ``clone()``:


def measured(forward, call, read):
    streams = {"default": default}
    streams |= {name: torch.cuda.Stream() for name in STREAMS[1:]}
    w = torch.ones(1000, device="cuda", requires_grad=True)
    w.grad = torch.zeros_like(w)
    torch.cuda.synchronize()
    with torch.cuda.stream(streams[forward]):
        loss = Slow.apply(w).sum()
    torch.cuda.synchronize()
    with torch.cuda.stream(streams[call]):
        loss.backward()
    with torch.cuda.stream(streams[read]):
        found = w.grad.clone()
    torch.cuda.synchronize()
    assert w.grad[0] == 2 and found[0] in (0, 2)
    return "right" if found[0] == 2 else "too early"


table_of(measured)  # once without looking: first calls load kernels, which waits
found = table_of(measured)
print("as on paper:", (found == expected).sum().sum(), "of", expected.size)
assert (found == expected).all(axis=None)
found

# %%
# ``backward()`` itself does not wait for the GPU:

# varies: Times depend on the machine.

w = torch.ones(1000, device="cuda", requires_grad=True)
loss = Slow.apply(w).sum()
torch.cuda.synchronize()
start = time.perf_counter()
loss.backward()
returned = time.perf_counter() - start
behind = torch.cuda.Event()
behind.record()
print(f"returned after {returned * 1e3:.1f} ms; done: {behind.query()}")
torch.cuda.synchronize()

# sphinx_gallery_start_ignore
for _ in range(2):
    _loss = Slow.apply(w).sum()
    torch.cuda.synchronize()
    _loss.backward()
    _behind = torch.cuda.Event()
    _behind.record()
    _done = _behind.query()
    torch.cuda.synchronize()
assert not _done
# sphinx_gallery_end_ignore

# %%
# **Forgetting a wait**: ``x`` is filled with 1 late, and ``side`` doubles it. And a loss of ``side`` is read in the default
# stream:


def double_in_side(wait):
    x = torch.zeros(1000, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    x.fill_(1)
    if wait:
        side.wait_stream(default)
    with torch.cuda.stream(side):
        y = x * 2
    torch.cuda.synchronize()
    return y[0].item()


def loss_of_side(wait):
    loss = torch.zeros((), device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        loss.fill_(5)
    if wait:
        default.wait_stream(side)
    number = loss.item()
    torch.cuda.synchronize()
    return number


double_in_side(False), loss_of_side(False)  # loads kernels
for name, attempt in (("x * 2", double_in_side), ("loss.item()", loss_of_side)):
    print(f"{name:<12} without a wait {attempt(False)}, with a wait {attempt(True)}")
assert [double_in_side(False), double_in_side(True)] == [0, 2]
assert [loss_of_side(False), loss_of_side(True)] == [0, 5]

# %%
# **Freeing too early**: ``x`` is deleted before ``side`` has read it, and the next tensor of the default stream gets its
# memory:


def copy_in_side(record):
    torch.cuda.empty_cache()
    x = torch.full((2**20,), 1.0, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        y = x * 1
    if record:
        x.record_stream(side)
    address = x.data_ptr()
    del x
    c = torch.full((2**20,), 7.0, device="cuda")
    same = c.data_ptr() == address
    torch.cuda.synchronize()
    return y[0].item(), same


copy_in_side(False)
for record in (False, True):
    value, same = copy_in_side(record)
    print(
        f"record_stream: {record!s:<6} copy of 1: {value}   memory used again: {same}"
    )
    assert (value, same) == ((1, False) if record else (7, True))

# %%
# The same happens to what a node saved. The product below saves ``x``, which is 3, and ``w.grad`` should be twice that. Forward
# and backward run in ``side``. ``backward()`` frees ``x`` when it has *launched* its work, and ``c``, a tensor of the default
# stream, takes the memory:


def gradient_in_side(call):
    w = torch.ones(2**20, device="cuda", requires_grad=True)
    x = torch.full((2**20,), 3.0, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        loss = Slow.apply(w * x).sum()
    del x  # the graph keeps it
    torch.cuda.synchronize()
    with torch.cuda.stream(call):
        loss.backward()
    c = torch.full((2**20,), 7.0, device="cuda")
    torch.cuda.synchronize()
    return w.grad[0].item(), c[0].item()


gradient_in_side(side)
for name, call in (("default", default), ("side", side)):
    print(f"backward() in {name:<8} w.grad: {gradient_in_side(call)[0]}")
assert gradient_in_side(default)[0] == 6
assert gradient_in_side(side)[0] != 6

# %%
# No error, and a wrong gradient. To fix it, call ``backward()`` in the default stream: that stream then waits, so ``c`` is
# filled later. Or call ``x.record_stream(side)`` before ``del x``, or make ``x`` inside ``with torch.cuda.stream(side):``.
#
# **What you gain with two streams.** Backward of two slow branches, in milliseconds:


def backward_ms(second):
    torch.cuda.synchronize()
    second.wait_stream(default)
    a = Slow.apply(w)
    with torch.cuda.stream(second):
        b = Slow.apply(w)
    default.wait_stream(second)
    loss = (a + b).sum()
    torch.cuda.synchronize()
    start = time.perf_counter()
    loss.backward()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


# varies: Times depend on the GPU.

backward_ms(side)
one, two = backward_ms(default), backward_ms(side)
print(f"one stream {one:.0f} ms, two streams {two:.0f} ms")
assert two < 0.75 * one

# %%
# These branches only wait. With large products you may gain little, because one of them fills the whole GPU.
#
# **A warning about AccumulateGrad.** The node of a leaf belongs to the stream in which it was made. In this step an old graph
# keeps that node, and the next step runs in a different stream:

# varies: Whether it warns, and in which words, depends on the version of PyTorch.

# sphinx_gallery_start_ignore
if _has_switch:
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
# sphinx_gallery_end_ignore
w = torch.ones(3, device="cuda", requires_grad=True)
old = w * 2  # made in the default stream, and kept
side.wait_stream(default)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.cuda.stream(side):
        (w * 3).sum().backward()
torch.cuda.synchronize()
for warning in caught:
    for sentence in str(warning.message).split(". ")[:2]:
        print(textwrap.fill(f"{sentence}.", 88))
assert w.grad.tolist() == [3, 3, 3]

# sphinx_gallery_start_ignore
if _has_switch:
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
# sphinx_gallery_end_ignore

# %%
# The gradient is right, but the streams may wait too often. So delete the old graph before the step, or make it in the same
# stream. ``torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)`` turns the warning off.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_memory_snapshot.py`: blocks, segments, and when the allocator uses them again.
# - :ref:`sphx_glr_gallery_scale_threads_and_processes.py`: backward in several threads.
# - In PyTorch's notes: `CUDA streams <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams>`__ and `stream
#   semantics of backward passes <https://docs.pytorch.org/docs/stable/notes/cuda.html#stream-semantics-of-backward-passes>`__.
#   In its reference: `Tensor.record_stream <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.record_stream.html>`__.
