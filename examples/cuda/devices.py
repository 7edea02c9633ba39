r"""
CUDA devices: where a tensor lives, and when its value is there
===============================================================

.. in-short::

   Choose the device once: ``device = torch.device("cuda" if torch.cuda.is_available() else "cpu")``. ``model.to(device)`` moves
   the model; ``x = x.to(device)`` returns a moved tensor. Most operations want all their inputs on one device. The usual
   exceptions are a 0-dimensional CPU tensor and a CPU index in square brackets. Most CUDA calls return before their result is
   ready: call ``torch.cuda.synchronize()`` before you read a clock.
"""

# %%
# The problem: one tensor stayed on the CPU
# -----------------------------------------
# Your model and your images are on the GPU, but the labels are not. Most operations then raise, because they do not move their
# inputs. ``FakeTensorMode`` makes tensors with a device and without data, so you can see this without a GPU:

import sys
import time

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

fake = FakeTensorMode()
with fake:
    x = torch.zeros(2, 2, device="cuda")
    other = torch.zeros(2, 2)
    labels = torch.zeros(2, dtype=torch.long)
    number = torch.tensor(1.0)

# %%
# .. how-measured:: each call runs on these tensors, and the table notes the device of the result or the error.

calls = {
    "x + other": lambda: x + other,
    "x @ other": lambda: x @ other,
    "torch.cat([x, other])": lambda: torch.cat([x, other]),
    "x.add_(other)": lambda: x.add_(other),
    "F.cross_entropy(x, labels)": lambda: F.cross_entropy(x, labels),
    "x + 1.0": lambda: x + 1.0,
    "x + number": lambda: x + number,
    "torch.where(x > 0, x, number)": lambda: torch.where(x > 0, x, number),
}


def outcome(call):
    try:
        with fake:
            return f"a result on {call().device}"
    except RuntimeError as error:
        return f"RuntimeError: {str(error)[:33]} …"


outcomes = pd.Series({text: outcome(call) for text, call in calls.items()})

# sphinx_gallery_start_ignore
assert [one.startswith("RuntimeError") for one in outcomes] == [True] * 5 + [False] * 3
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_said = "Expected all tensors" if TORCH > (2, 11) else "Unhandled FakeTensor"
assert all(_said in one for one in outcomes[:5])
assert all(one.endswith("cuda:0") for one in outcomes[5:])
# sphinx_gallery_end_ignore

# %%
# The last two calls of the table work, because ``number`` is a CPU tensor without dimensions. A plain number such as 1.0 works
# too. (So does an index in square brackets: on a real GPU ``x[labels]`` is fine.)

outcomes.to_frame("what happens")

# %%
# The message for a layer whose batch stayed on the CPU, from fake tensors (the measured half has the real one):

with fake:
    weight = torch.zeros(3, 2, device="cuda")
    batch = torch.zeros(4, 2)  # no device: it is made on the CPU
    try:
        F.linear(batch, weight)
    except RuntimeError as error:
        message = str(error)
        print(message.splitlines()[0])

# sphinx_gallery_start_ignore
assert _said in message
# sphinx_gallery_end_ignore

# %%
# Make a leaf on its device
# -------------------------
# If a tensor requires a gradient, its move to another device is recorded. So the moved tensor is a result, and the gradient
# goes to the tensor that you made first. In the first line below nobody kept that tensor. Instead, make the leaf on its
# device, with ``device=``. (The ``meta`` device takes the place of the GPU, because a move to it is recorded in the same
# way.)

lost = torch.ones(2, requires_grad=True).to("meta")
kept = torch.ones(2, requires_grad=True, device="meta")
print("moved:        leaf", lost.is_leaf, "on", lost.device, "by", lost.grad_fn.name())
print("with device=: leaf", kept.is_leaf, "on", kept.device)
assert not lost.is_leaf and lost.grad_fn.name() == "ToCopyBackward0"
assert kept.is_leaf
# sphinx_gallery_start_ignore
assert torch.ones(2).to("meta").is_leaf  # without requires_grad a copy is a leaf
# sphinx_gallery_end_ignore

# %%
# Python does not wait
# --------------------
# A CUDA operation goes into a queue, a *stream*, and the call returns. In one stream a kernel starts when it has been launched
# *and* the kernel before it is done. So two clocks show different times for ten products of square matrices. We assume 10 µs
# for a launch, and 20 · 10¹² floating-point operations a second:

LAUNCH, RATE = 10e-6, 20e12


def predicted(size, repeats=10):
    """Seconds until Python goes on, and until the results are there."""
    launched = done = 0.0
    for _ in range(repeats):
        launched += LAUNCH
        done = max(launched, done) + 2 * size**3 / RATE
    return launched, done


sizes = [256, 512, 1024, 2048, 4096, 8192]
on_paper = pd.DataFrame([predicted(size) for size in sizes], sizes) * 1e3
on_paper.columns = ["until Python goes on", "until the results are there"]
print(on_paper.round(3))

# sphinx_gallery_start_ignore
assert on_paper.iloc[:, 0].round(6).eq(0.1).all()
assert on_paper.iloc[0, 1] < 0.11 and on_paper.iloc[-1, 1] > 500
# sphinx_gallery_end_ignore

# %%
# In milliseconds. The curves part where a product takes longer than its launch.

# figure: Two curves over the size of the matrices on logarithmic axes, computed from the two assumed rates. They
#   coincide up to 256 rows. The time until Python goes on stays at 0.1 ms; the time until the results are there rises
#   to 550 ms.
look = {
    "style": ["s--", "o-"],
    "color": ["#2563eb", "#c2410c"],
    "logx": True,
    "logy": True,
}
names = {"xlabel": "rows of the square matrices", "ylabel": "ms, ten products"}
ax = on_paper.plot(
    **look, **names, title="Queued is not done (on paper)", figsize=(7, 3)
)
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.minorticks_off()
ax.figure.tight_layout()

# %%
# A call that needs the values on the CPU waits for the queue: ``item()``, ``tolist()``, ``print``, ``.cpu()``, an ``if`` on a
# tensor. So do ``x[x > 0]`` and ``x.nonzero()``, because the values decide how large the result is. In a training loop, add up
# ``loss.detach()`` on the GPU, and call ``item()`` once. The fake tensor ``x`` has no values, so three of these calls raise:

with fake:
    for text, call in {
        "x.sum().item()": lambda: x.sum().item(),
        "x.tolist()": lambda: x.tolist(),
        "if x.any():": lambda: bool(x.any()),
    }.items():
        try:
            call()
        except RuntimeError as error:
            print(f"{text:<16}{type(error).__name__}: {error}")
            assert "_local_scalar_dense" in str(error)

# sphinx_gallery_start_ignore
with fake:
    assert "FakeTensor" in str(x) and x.cpu().is_cpu
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Forgetting the labels.** ``F.cross_entropy(x, labels)`` raises. Move everything that the batch holds.
#
# **Asking the moved tensor for its gradient.** ``lost.grad`` stays None. Make the leaf with ``device=``.
#
# **Timing without synchronizing.** The clock shows how fast Python fills the queue.
#
# Exercise
# --------
# ``images`` and ``weight`` are on the GPU; ``mean`` is a CPU tensor of shape ``(3, 1, 1)`` and ``scale`` a CPU tensor of shape
# ``()``. Which of ``images - mean``, ``images * scale`` and ``F.conv2d(images, weight)`` raise?
#
# .. solution::
#
# Only the first. ``mean`` has dimensions, although it has only three numbers; ``scale`` has none.

with fake:
    images = torch.zeros(1, 3, 8, 8, device="cuda")
    weight = torch.zeros(4, 3, 3, 3, device="cuda")
    mean, scale = torch.zeros(3, 1, 1), torch.tensor(2.0)
answers = [
    outcome(lambda: images - mean),
    outcome(lambda: images * scale),
    outcome(lambda: F.conv2d(images, weight)),
]
print(*answers, sep="\n")
assert [answer.startswith("RuntimeError") for answer in answers] == [True, False, False]

# %%
# Measured on a GPU
# -----------------
# What the machine has, a real move, real times, and seeds.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

# varies: The device is that of the machine.

print("available:      ", torch.cuda.is_available())
print("device count:   ", torch.cuda.device_count())
print("current device: ", torch.cuda.current_device())
print("its name:       ", torch.cuda.get_device_name())
assert torch.cuda.current_device() == 0 < torch.cuda.device_count()

# %%
# What it can do:

# varies: The device is that of the machine.

properties = torch.cuda.get_device_properties(0)
print("memory:              ", f"{properties.total_memory / 2**30:.1f} GiB")
print("multiprocessors:     ", properties.multi_processor_count)
print("compute capability:  ", f"{properties.major}.{properties.minor}")
assert (properties.major, properties.minor) == torch.cuda.get_device_capability()

# %%
# ``torch.zeros(3, device=device)`` makes the tensor on the device. ``torch.zeros(3).to(device)`` makes it on the CPU and copies
# it.

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
here = torch.zeros(3)
there = torch.zeros(3, device=device)
print(here.device, there.device)
assert here.is_cpu and there.is_cuda

# sphinx_gallery_start_ignore
assert there[torch.tensor([0, 2])].is_cuda  # an index may be on the CPU
# sphinx_gallery_end_ignore

# %%
# The message about two devices, from real tensors:

weight = torch.zeros(3, 2, device=device)
batch = torch.zeros(4, 2)
try:
    F.linear(batch, weight)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")
assert "Expected all tensors to be on the same device" in message

# %%
# ``to`` copies, unless the tensor is already there. Then it returns the tensor itself.

copy = here.to(device)
print("the same tensor as before:", copy is here)
print("moved there once more:    ", copy.to(device) is copy)
copy.add_(1)
print(here.tolist(), copy.tolist())
assert copy is not here and copy.to(device) is copy
assert here.tolist() == [0, 0, 0] and copy.tolist() == [1, 1, 1]

# %%
# A move is recorded like any operation. Its backward moves the gradient to the device of the input.

w = torch.tensor(3.0, requires_grad=True)
moved = w.to(device)
loss = moved * moved
loss.backward()

# graph: loss -- The copy to the GPU is a node of the graph, and w gets its gradient on the CPU

print("moved by:", moved.grad_fn.name())
print("w.grad:  ", w.grad, "on", w.grad.device)
assert moved.grad_fn.name() == "ToCopyBackward0"
assert w.grad == 6 and w.grad.is_cpu

# %%
# ``tensor.to`` returns a tensor; ``module.to`` changes the module. Its parameters are the same objects as before and still
# leaves, with their data on the GPU. This optimizer was made before the move, and works. But what an optimizer has stored does
# not move with the module, so make the optimizer after the move.

layer = nn.Linear(4, 2)
weight = layer.weight
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer.to(device)
print("same parameter:", layer.weight is weight)
print("a leaf:        ", layer.weight.is_leaf, "on", layer.weight.device)

before = weight.detach().clone()
layer(torch.ones(1, 4, device=device)).sum().backward()
optimizer.step()
print("moved by step: ", f"{(before - weight).abs().max().item():.4f}")
assert layer.weight is weight and weight.is_leaf and weight.is_cuda
assert torch.allclose(before - weight, torch.full_like(before, 0.1))

# sphinx_gallery_start_ignore
_late = nn.Linear(4, 2)
_adam = torch.optim.Adam(_late.parameters())
_late(torch.ones(1, 4)).sum().backward()
_adam.step()
_late.to(device)
assert _late.weight.is_cuda and _adam.state[_late.weight]["exp_avg"].is_cpu
_early = nn.Linear(4, 2)
_adagrad = torch.optim.Adagrad(_early.parameters())
_early.to(device)
assert _adagrad.state[_early.weight]["sum"].is_cpu  # and so its step fails
_early(torch.ones(1, 4, device=device)).sum().backward()
try:
    _adagrad.step()
except RuntimeError as _error:
    assert "same device" in str(_error)
else:
    raise AssertionError("Adagrad goes on working after a move")
# sphinx_gallery_end_ignore

# %%
# Ten products of large matrices, timed twice: until Python goes on, and until the results are there.
# ``torch.cuda.synchronize()`` waits for the queue to be empty.


def seconds(size, repeats=10):
    a = torch.randn(size, size, device=device)
    a @ a  # the first product loads the library
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        a @ a
    queued = time.perf_counter() - start
    torch.cuda.synchronize()
    return queued, time.perf_counter() - start


# %%
# With large matrices Python is far ahead of the GPU.

# varies: Times depend on the GPU, the machine and its load.

measured = pd.DataFrame([seconds(size) for size in sizes], sizes) * 1e3
measured.columns = on_paper.columns
print(measured.round(3))
queued, done = measured.columns
assert measured[queued][8192] < measured[done][8192] / 2
assert measured[done][8192] > 10 * measured[done][256]

# %%
# The measured curves part where the GPU has more to do than Python.

# varies: Times depend on the GPU, the machine and its load.

# figure: Two measured curves over the size of the matrices on logarithmic axes. For the largest matrices the time
#   until Python goes on lies far below the time until the results are there.
ax = measured.plot(
    **look, **names, title="Queued is not done (measured)", figsize=(7, 3)
)
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.minorticks_off()
ax.figure.tight_layout()

# %%
# To time GPU work, put two events into the same queue as the work. The GPU notes when it reaches them.

# varies: Times depend on the GPU, the machine and its load.

a = torch.randn(4096, 4096, device=device)
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
b = a @ a
end.record()
ready_at_once = end.query()
end.synchronize()
print(
    f"one product: {begin.elapsed_time(end):.3f} ms; ready when queued: {ready_at_once}"
)
assert begin.elapsed_time(end) > 0

# %%
# ``torch.manual_seed`` seeds the CPU and every GPU. Their generators differ, so the same seed gives different numbers.

torch.manual_seed(0)
on_cpu, on_gpu = torch.rand(3), torch.rand(3, device=device)
torch.manual_seed(0)
again_cpu, again_gpu = torch.rand(3), torch.rand(3, device=device)
print("CPU:", [round(number, 4) for number in on_cpu.tolist()])
print("GPU:", [round(number, 4) for number in on_gpu.tolist()])
assert torch.equal(on_cpu, again_cpu) and torch.equal(on_gpu, again_gpu)
assert not torch.allclose(on_cpu, on_gpu.cpu())

# %%
# ``torch.cuda.manual_seed`` seeds only the current GPU, ``manual_seed_all`` seeds all of them; both leave the CPU as it is.
# Your own ``Generator`` does not share its numbers with anyone.

state = torch.get_rng_state()
torch.cuda.manual_seed_all(1)
assert torch.equal(torch.get_rng_state(), state)

own = torch.Generator(device=device).manual_seed(0)
from_own = torch.rand(3, device=device, generator=own)
print("own generator, seed 0:", torch.equal(from_own, on_gpu))
assert torch.equal(from_own, on_gpu)

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, why the result of an operation is no leaf.
# - :ref:`sphx_glr_gallery_profiling_profiler_table.py`, where time goes on the CPU.
# - In PyTorch's reference: `CUDA semantics <https://docs.pytorch.org/docs/stable/notes/cuda.html>`__ and `torch.cuda
#   <https://docs.pytorch.org/docs/stable/cuda.html>`__.
