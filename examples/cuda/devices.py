r"""
CUDA devices: where a tensor lives, and when its value is there
===============================================================

A tensor lives on one device, and operations run where their inputs live. This page asks PyTorch what devices there
are, moves tensors between them and follows the gradient back, and shows that the GPU works while Python is already
further on.
"""

# %%
# Is there a GPU?
# ---------------
# Four questions come first in any script. Devices are counted from 0, and the *current* device is the one that a
# plain ``"cuda"`` means.

import sys
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

# %%
# The rest needs a GPU.
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
# Its properties say what it can do. The memory is in bytes.

# varies: The device is that of the machine.

properties = torch.cuda.get_device_properties(0)
print("memory:              ", f"{properties.total_memory / 2**30:.1f} GiB")
print("multiprocessors:     ", properties.multi_processor_count)
print("compute capability:  ", f"{properties.major}.{properties.minor}")
assert (properties.major, properties.minor) == torch.cuda.get_device_capability()

# %%
# A script that should run on both
# --------------------------------
# Choose the device once, and pass it on. A factory function with ``device=`` makes the tensor there.
# ``torch.zeros(3).to(device)`` makes it on the CPU first and then copies it.

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
here = torch.zeros(3)
there = torch.zeros(3, device=device)
print(here.device, there.device)
assert here.is_cpu and there.is_cuda

# %%
# ``to`` copies, unless the tensor is there already. Then it returns the tensor itself.

copy = here.to(device)
print("the same tensor as before:", copy is here)
print("moved there once more:    ", copy.to(device) is copy)
copy.add_(1)
print(here.tolist(), copy.tolist())
assert copy is not here and copy.to(device) is copy
assert here.tolist() == [0, 0, 0] and copy.tolist() == [1, 1, 1]

# %%
# Gradients travel back
# ---------------------
# A move is an operation like any other. It is recorded, and its backward moves the gradient to where the input lives.

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
# A module is moved in place
# --------------------------
# ``tensor.to`` returns a tensor; ``module.to`` changes the module. Its parameters are the same objects as before
# and still leaves, with their data on the GPU. An optimizer made before the move goes on working.

layer = nn.Linear(4, 2)
weight = layer.weight
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer.to(device)
print("same parameter:", layer.weight is weight)
print("a leaf:        ", layer.weight.is_leaf, "on", layer.weight.device)

before = weight.detach().clone()
layer(torch.ones(1, 4, device=device)).sum().backward()
optimizer.step()
print("moved by step: ", (before - weight).abs().max().item())
assert layer.weight is weight and weight.is_leaf and weight.is_cuda
assert torch.allclose(before - weight, torch.full_like(before, 0.1))

# %%
# Python does not wait
# --------------------
# A CUDA operation is put into a queue, and the call returns. Here are ten products of large matrices, timed twice:
# until Python goes on, and until the results are there. ``torch.cuda.synchronize()`` waits for the queue to be
# empty.


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
# The larger the matrices, the further Python is ahead of the GPU.

# varies: Times depend on the GPU, the machine and its load.

sizes = [256, 512, 1024, 2048, 4096, 8192]
queued, done = zip(*[seconds(size) for size in sizes], strict=True)
for size, issued, ended in zip(sizes, queued, done, strict=True):
    print(f"{size:>5}: queued {issued * 1e3:8.3f} ms   done {ended * 1e3:8.3f} ms")
assert queued[-1] < done[-1] / 2
assert done[-1] > 10 * done[0]

# %%
# The two curves part where the GPU has more to do than Python.

# varies: Times depend on the GPU, the machine and its load.

# figure: Two curves over the size of the matrices on logarithmic axes. For the largest matrices the time until Python
#   goes on lies far below the time until the results are there.
fig, ax = plt.subplots(figsize=(7, 3.6))
ax.loglog(
    sizes,
    [t * 1e3 for t in done],
    "o-",
    color="#c2410c",
    label="until the results are there",
)
ax.loglog(
    sizes,
    [t * 1e3 for t in queued],
    "s--",
    color="#2563eb",
    label="until Python goes on",
)
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.minorticks_off()
ax.set_xlabel("rows of the square matrices")
ax.set_ylabel("ms, ten products")
ax.set_title("Queued is not done")
ax.legend()
fig.tight_layout()

# %%
# Whatever needs a value in Python waits for it: ``item()``, ``tolist()``, ``print``, ``.cpu()``, an ``if`` on a
# tensor. To time GPU work, let the GPU itself note the moments: two events go into the same queue as the work.

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
assert end.query()

# %%
# Seeds
# -----
# ``torch.manual_seed`` seeds the CPU and every GPU. The generators are different ones, so the same seed gives other
# numbers on the CPU than on the GPU.

torch.manual_seed(0)
on_cpu, on_gpu = torch.rand(3), torch.rand(3, device=device)
torch.manual_seed(0)
again_cpu, again_gpu = torch.rand(3), torch.rand(3, device=device)
print("CPU:", [round(number, 4) for number in on_cpu.tolist()])
print("GPU:", [round(number, 4) for number in on_gpu.tolist()])
assert torch.equal(on_cpu, again_cpu) and torch.equal(on_gpu, again_gpu)
assert not torch.allclose(on_cpu, on_gpu.cpu())

# %%
# ``torch.cuda.manual_seed`` seeds the current GPU alone, ``manual_seed_all`` all of them; both leave the CPU as it
# is. A ``Generator`` of your own keeps one stream of numbers apart from all others.

state = torch.get_rng_state()
torch.cuda.manual_seed_all(1)
assert torch.equal(torch.get_rng_state(), state)

own = torch.Generator(device=device).manual_seed(0)
from_own = torch.rand(3, device=device, generator=own)
print("own generator, seed 0:", torch.equal(from_own, on_gpu))
assert torch.equal(from_own, on_gpu)

# %%
# What people get wrong
# ---------------------
# **Mixing devices.** Operations do not move their inputs. A tensor without dimensions is the exception: a CPU
# scalar may take part.

x = torch.ones(2, device=device)
try:
    x + torch.ones(2)
except RuntimeError as error:
    print(f"RuntimeError: {str(error).splitlines()[0]}")
    assert "Expected all tensors to be on the same device" in str(error)

print(x + torch.tensor(1.0))
assert (x + torch.tensor(1.0)).tolist() == [2, 2]

# %%
# **Moving a leaf, and asking the copy for the gradient.** The result of ``to`` is no leaf. The gradient goes to the
# tensor on the CPU, which nobody kept. Make the leaf where it belongs, with ``device=``.

lost = torch.ones(2, requires_grad=True).to(device)
kept = torch.ones(2, requires_grad=True, device=device)
F.mse_loss(lost, torch.zeros_like(lost)).backward()
F.mse_loss(kept, torch.zeros_like(kept)).backward()
print("lost: leaf", lost.is_leaf, " retains its gradient", lost.retains_grad)
print("kept: leaf", kept.is_leaf, " grad", kept.grad.tolist())
assert not lost.is_leaf and not lost.retains_grad
assert kept.grad.tolist() == [1, 1]

# %%
# **Timing without synchronising**, as in the table above: the first column says how fast Python fills a queue.

# %%
# Exercise
# --------
# ``a`` lives on the CPU and ``b`` on the GPU. Both require a gradient, and ``(a.to(device) * b).sum()`` goes
# backward. On which devices are the two gradients, and which nodes stand between the product and ``a``?
#
# .. solution::
#
# A gradient lives where its tensor lives. The engine goes from the product through the copy to the accumulation for
# ``a``.

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True, device=device)
product = a.to(device) * b
product.sum().backward()
copy_node = product.grad_fn.next_functions[0][0]
print(
    "a.grad:",
    a.grad.tolist(),
    a.grad.device,
    " b.grad:",
    b.grad.tolist(),
    b.grad.device,
)
print(
    product.grad_fn.name(),
    "->",
    copy_node.name(),
    "->",
    copy_node.next_functions[0][0].name(),
)
assert a.grad.is_cpu and b.grad.is_cuda
assert a.grad.tolist() == [3, 4] and b.grad.tolist() == [1, 2]

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_training_reproducibility.py`, what a seed fixes and what it does not.
# - Next: :ref:`sphx_glr_gallery_cuda_no_grad_memory.py`, how much memory a graph holds on the GPU.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, why the result of an operation is no leaf.
# - :ref:`sphx_glr_gallery_profiling_profiler_table.py`, where time goes on the CPU.
# - In PyTorch's reference: `CUDA semantics <https://docs.pytorch.org/docs/stable/notes/cuda.html>`__ and
#   `torch.cuda <https://docs.pytorch.org/docs/stable/cuda.html>`__.
