r"""
CUDA graphs: capture a training step, and what a replay does not do
===================================================================

.. in-short::

   If a step is many small kernels, Python and the launches take most of the time. ``torch.cuda.graph`` captures the kernels of
   one step, backward included, and ``replay()`` launches them all at once, without Python. A replay reads and writes the *same
   memory*: copy each batch into the captured input, and clone what you keep. What Python did during capture, such as an
   ``if``, a hook or a learning rate, is fixed.
"""

# %%
# The problem: a step of many small kernels
# -----------------------------------------
# You train a small network, and the GPU is idle most of the time, because Python launches each kernel separately. A *CUDA
# graph* records the kernels of one step and launches them together:
#
# .. code-block:: python
#
#    graph = torch.cuda.CUDAGraph()
#    with torch.cuda.graph(graph):  # after a warm-up
#        loss = step()
#    for batch in data:
#        x.copy_(batch)
#        graph.replay()
#
# It notes the kernels, and the addresses that they read and write. (The graph of autograd is something else.)
#
# .. list-table::
#    :header-rows: 1
#    :widths: 40 30 30
#
#    * - in the step
#      - during capture
#      - in each replay
#    * - kernels
#      - noted, not run
#      - run again
#    * - the memory that they read and write
#      - its addresses are noted
#      - the same addresses
#    * - Python: an ``if``, a hook, a number
#      - runs once
#      - does not run
#
# Here is a recorder for the CPU that behaves in nearly the same way. It notes each operation, also those of backward. A replay
# runs them again and writes the results into the same tensors. (It computes while it records; a capture on the GPU does not.)

import sys
import time
import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self.calls.append((operation, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def replay(self):
        for operation, args, kwargs, result in self.calls:
            again = operation(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old is not new:
                    old.detach().copy_(new)


# %%
# A training step, whose input is the memory of ``x``. Each batch is copied into it:


def mlp(device="cpu"):
    torch.manual_seed(0)
    layers = [part for _ in range(10) for part in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(64, 1)).to(device)


def make_step(net, x):
    """A step, and how often a hook of the net was called."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    called = []
    net[0].register_forward_hook(lambda *_: called.append(1))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, called


torch.manual_seed(1)
data = torch.randn(20, 32, 64)


def train(x, step, replayed=None):
    losses = []
    for batch in data:
        x.copy_(batch)
        losses.append((replayed() if replayed else step()).item())
    return losses


# %%
# The same 20 steps in the usual way, and by replay:

x = data[0].clone()
usual_step, usual_called = make_step(mlp(), x)
usual = train(x, usual_step)

net = mlp()
state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
step, called = make_step(net, x)
with Recorder() as recorder:
    loss = step()
net.load_state_dict(state)  # as before the recorded step
called.clear()
replayed = train(x, step, lambda: (recorder.replay(), loss)[1])

print(len(recorder.calls), "operations recorded")
close = torch.allclose(torch.tensor(usual), torch.tensor(replayed), rtol=1e-4)
print("the same losses:", close)
print("calls of the hook:", len(usual_called), "as usual,", len(called), "in replays")
assert close and len(usual_called) == 20 and not called

# %%
# Why it is faster
# ----------------
# Each operation costs Python some microseconds, whatever its size. We assume 10 µs for each, and 2 µs of computing on the GPU:

count = len(recorder.calls)
paper = {"as usual": count * 10e-3, "replay": count * 2e-3}

# figure: Two bars, computed from assumed times. The usual step takes five times as long as the replay.
fig, ax = plt.subplots(figsize=(7, 1.6))
bars = ax.barh(list(paper), list(paper.values()), color=["#64748b", "#2563eb"])
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.set(xlabel="ms for one step", title="A step of small kernels (on paper)")
ax.margins(x=0.1)
ax.invert_yaxis()
fig.tight_layout()
assert paper["as usual"] == 5 * paper["replay"]

# %%
# With large kernels, the GPU is busy anyway, so you gain little.
#
# What people get wrong
# ---------------------
# **Giving the name x to a new batch.** The recording knows the memory, not the name:

losses = []
for _ in range(2):
    net.load_state_dict(state)
    recorder.replay()
    losses.append(loss.item())
    x = torch.zeros(32, 64)  # another tensor
print("the new x changes the loss:", losses[0] != losses[1])
assert losses[0] == losses[1]

# %%
# **Keeping results.** Each replay writes into the same ``loss``, so a list of losses holds one tensor many times. Keep
# ``loss.clone()`` or ``loss.item()``.
#
# **Changing what Python knew.** A factor, a learning rate, an ``if``, the mode ``train()``: all were fixed when the step was
# recorded.

factor = 2.0
ones = torch.ones(3)
with Recorder() as short:
    scaled = ones * factor
factor = 5.0
short.replay()
print(scaled)
assert scaled.tolist() == [2, 2, 2]

# %%
# **Accumulating by accident.** If ``grad`` exists before the recording, and ``zero_grad`` is not part of it, each replay adds
# to ``grad``. Call ``zero_grad(set_to_none=True)`` inside the recorded step: each replay then writes a new gradient.
#
# **Skipping the warm-up.** On a GPU, run the step a few times in a side stream first. Libraries load code and allocate memory
# in their first calls, and a capture may fail there. An optimizer with momentum has no state in its first step, so a recording
# of that step leaves the momentum out. The warm-up trains: afterwards, load the earlier state of the model and the optimizer.
#
# **Reading a value.** ``loss.item()``, ``print(loss)`` and ``if loss > 0`` wait for the GPU, so they raise inside a capture.
#
# Exercise
# --------
# How can the learning rate of a recorded step change?
#
# .. solution::
#
# Make it a tensor, because the recording reads its memory. (For a capture it must be on the GPU. Give it to an optimizer with
# ``fused=True`` or ``capturable=True``.) ``fill_`` changes it:

rate, weight = torch.tensor(0.5), torch.ones(3)
with Recorder() as update:
    weight.sub_(rate)  # 0.5
rate.fill_(0.25)
update.replay()
print(weight)
assert weight.tolist() == [0.25, 0.25, 0.25]

# %%
# Measured on a GPU
# -----------------
# The same training step, captured by CUDA.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()


def capture(step):
    """The graph of CUDA, and what the step returned."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # warm-up
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = step()
    return graph, result


# sphinx_gallery_start_ignore
if hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
# sphinx_gallery_end_ignore
data = data.cuda()
x = data[0].clone()
usual_step, usual_called = make_step(mlp("cuda"), x)
usual = train(x, usual_step)

net = mlp("cuda")
state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
step, called = make_step(net, x)
graph, loss = capture(step)
net.load_state_dict(state)
called.clear()
replayed = train(x, step, lambda: (graph.replay(), loss)[1])
print("the 20 losses are equal:", usual == replayed)
print("calls of the hook:", len(usual_called), "as usual,", len(called), "in replays")
assert torch.allclose(torch.tensor(usual), torch.tensor(replayed), rtol=1e-3)
assert len(usual_called) == 20 and not called

# %%
# The times of a step:

# varies: Times depend on the GPU and the machine.


def milliseconds(action, times=200):
    for _ in range(20):
        action()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        action()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / times * 1e3


slow, fast = milliseconds(usual_step), milliseconds(graph.replay)
print(f"as usual {slow:.2f} ms, replay {fast:.2f} ms")
assert fast < 0.6 * slow

# %%
# During capture nothing is computed:

ones, target = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
target.copy_(ones * 2)  # loads the kernels
target.zero_()
torch.cuda.synchronize()
short = torch.cuda.CUDAGraph()
with torch.cuda.graph(short):
    target.copy_(ones * 2)
print("after capture:", target.tolist())
assert target.tolist() == [0, 0, 0, 0]
short.replay()
print("after replay: ", target.tolist())
assert target.tolist() == [2, 2, 2, 2]

# %%
# The norm of a gradient after each of three replays, with ``zero_grad`` inside the captured step, and without it:


def norms(inside):
    net, ones = mlp("cuda"), torch.ones(8, 64, device="cuda")

    def step():
        if inside:
            net.zero_grad(set_to_none=True)
        net(ones).sum().backward()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    net.zero_grad(set_to_none=False)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        step()
    result = []
    for _ in range(3):
        graph.replay()
        result.append(net[0].weight.grad.norm().item())
    return [f"{norm / result[0]:.2f}" for norm in result]


print("zero_grad inside: ", norms(True))
print("zeros, and no zero_grad:", norms(False))
assert norms(True) == ["1.00"] * 3 and norms(False) == ["1.00", "2.00", "3.00"]

# %%
# Dropout draws new numbers in each replay, and the seed still works:

kept = torch.ones(1000, device="cuda", requires_grad=True)


def drop():
    kept.grad = None
    nn.functional.dropout(kept).sum().backward()


dropped, _ = capture(drop)
masks = []
for seed in (None, None, 0, 0):
    if seed is not None:
        torch.manual_seed(seed)
    dropped.replay()
    masks.append(kept.grad.clone())
print("two replays are equal:      ", torch.equal(masks[0], masks[1]))
print("with the same seed they are:", torch.equal(masks[2], masks[3]))
assert not torch.equal(masks[0], masks[1]) and torch.equal(masks[2], masks[3])

# %%
# Two errors that a capture raises. The first step copies a number from the CPU to the GPU. In the second, Adam counts its steps
# on the CPU, which is its default. Make Adam with ``capturable=True``:


def with_number():
    return (net(x) * torch.tensor(2.0, device="cuda")).sum()


adam = torch.optim.Adam(net.parameters())
for wrong in (with_number, adam.step):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a graph without kernels
            capture(wrong)
    except RuntimeError as error:
        message = str(error).split(". ")[0]
        print(f"RuntimeError: {message}")
        assert "graph capture" in message

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_cuda_profiler.py`: is the step bound by launches?
# - :ref:`sphx_glr_gallery_scale_compile_and_autograd.py`: ``torch.compile`` with ``mode="reduce-overhead"`` uses CUDA graphs.
# - In PyTorch's notes: `CUDA graphs <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs>`__. In its reference:
#   `torch.cuda.graph <https://docs.pytorch.org/docs/stable/generated/torch.cuda.graph.html>`__.
