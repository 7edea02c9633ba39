r"""
CUDA out of memory. Tried to allocate
=====================================

.. index::
   ! single: DefaultCPUAllocator: can't allocate memory
   ! single: reserved by PyTorch but unallocated
   ! single: torch.OutOfMemoryError

.. in-short::

   There is no room for one more tensor. In validation, turn off the graph, as here. In training, use a smaller batch first. A
   size of terabytes often means a wrong shape.

   .. code-block:: diff

        total = 0
      + with torch.no_grad():
            for images, labels in test_set:
                total += F.cross_entropy(model(images), labels)

   **Not this:** ``torch.cuda.empty_cache()`` in the loop. It frees no tensor, and PyTorch gets no more memory by it.
"""

# %%
# The code that raises it
# -----------------------
# .. quoted-message:: https://github.com/murong-xu/CADS/issues/4
#
#    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB of
#    which 12.73 GiB is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the allocated memory
#    9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated.
#
# On the CPU the same fault has other words. This page lets its own program take 200 MiB more, so that memory is full soon:

import torch.nn.functional as F
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import resource
import weakref
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

torch.manual_seed(0)
_batch = torch.randn(4096, 64), torch.randint(10, (4096,))
test_set = [_batch] * 9
_warm = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 10))
F.cross_entropy(_warm(_batch[0]), _batch[1]).backward()  # starts the threads
del _warm
_before = resource.getrlimit(resource.RLIMIT_AS)


def _limit():
    used = int(Path("/proc/self/statm").read_text().split()[0])
    most = used * resource.getpagesize() + 200 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, _before[1]))


def _no_limit():
    resource.setrlimit(resource.RLIMIT_AS, _before)


_limit()
try:
    # sphinx_gallery_end_ignore
    model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 10))

    total = 0
    for images, labels in test_set:
        total += F.cross_entropy(model(images), labels)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _no_limit()
    message = str(error)
    print("RuntimeError:", message)
_no_limit()
assert "DefaultCPUAllocator: can't allocate memory: you tried to allocate" in message
assert f"{4096 * 2048 * 4} bytes. Error code 12 (Cannot allocate memory)" in message


def _says(call):
    _limit()
    try:
        call()
    except RuntimeError as error:
        return str(error)
    finally:
        _no_limit()
    return ""


def _validate(model, number):
    total = 0
    for images, labels in test_set:
        total = total + number(F.cross_entropy(model(images), labels))
    return total


del total
assert "can't allocate memory" in _says(lambda: _validate(model.eval(), lambda x: x))
assert _says(lambda: _validate(model.train(), torch.Tensor.item)) == ""
assert _says(lambda: _validate(model.train(), torch.Tensor.detach)) == ""
assert 12.73 + 9.35 < 22.78  # of the message below
assert "doesn't increase the amount of GPU" in torch.cuda.empty_cache.__doc__
# sphinx_gallery_end_ignore

# %%
# In the GPU's message:
#
# - **22.78 GiB**: the *one* tensor for which there was no room, not what the program needs.
# - **9.08 GiB**: your tensors.
# - **9.35 GiB**: memory that PyTorch holds for later tensors. It may lie in pieces that are too small.
#
# Free and unallocated memory together are 22.08 GiB, less than 22.78. So small pieces are not the cause here.
#
# On Windows, the CPU says *DefaultCPUAllocator: not enough memory: you tried to allocate 33554432 bytes.* Linux may also end a
# program with ``Killed``, without a message.
#
# Why
# ---
# Forward keeps the tensors that backward will need, and ``backward()`` frees them. Validation calls no backward. ``total`` is a
# tensor with a graph, so the graph of each batch stays.
#
# In training, one batch may be too much. Here is the peak of one pass of eight blocks, as predicted from the shapes:

import torch
from torch.utils.checkpoint import checkpoint


# sphinx_gallery_start_ignore
class _Peak(TorchDispatchMode):
    """The most bytes in use at once, in storages that appeared within."""

    def __init__(self):
        super().__init__()
        self.sizes, self.most = {}, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.sizes:
                    self.sizes[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.sizes.pop, storage._cdata)
        self.most = max(self.most, sum(self.sizes.values()))
        return result


def peak(way):
    with FakeTensorMode(), _Peak() as meter:
        blocks = [nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)]
        way(nn.Sequential(*blocks), torch.randn(8192, 512))
    return meter.most / 2**20


# sphinx_gallery_end_ignore


def plain(model, images):
    model(images).mean().backward()


def half_twice(model, images):
    for half in images.chunk(2):
        (model(half).mean() / 2).backward()


def checkpointed(model, images):
    for block in model:
        images = checkpoint(block, images, use_reentrant=False)
    images.mean().backward()


ways = {"as it is": plain, "half the batch, twice": half_twice}
ways |= {"checkpoint each block": checkpointed}
ways["autocast, bfloat16"] = torch.autocast("cpu", torch.bfloat16)(plain)
ways["no_grad, no backward"] = torch.no_grad()(lambda model, images: model(images))
most = {name: peak(way) for name, way in ways.items()}

# figure: Bars of the peak of one pass. As it is 296 MiB, half the batch twice 168, a checkpoint for each block 200,
#   bfloat16 172, no_grad without backward 72.
# sphinx_gallery_start_ignore
fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
bars = ax.barh(list(most), most.values(), color=["#c2410c"] + 4 * ["#2563eb"])
ax.bar_label(bars, fmt="%.0f", padding=3)
ax.set(
    xlabel="MiB", xlim=(0, 340), title="Eight blocks, 8192 samples: memory at the peak"
)
ax.invert_yaxis()
assert [round(size) for size in most.values()] == [296, 168, 200, 172, 72]


def _halves_agree(layer):
    batch = torch.randn(8, 3)
    ways = []
    for parts in (1, 2):
        layer.zero_grad()
        for part in batch.chunk(parts):
            (layer(part).square().mean() / parts).backward()
        ways.append(next(layer.parameters()).grad.clone())
    return torch.allclose(*ways, atol=1e-5)


assert _halves_agree(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)))
assert not _halves_agree(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Turn off the graph where nothing is trained. The loop of above stays within the same 200 MiB:

# sphinx_gallery_start_ignore
_limit()
# sphinx_gallery_end_ignore
total = 0
with torch.no_grad():
    for images, labels in test_set:
        total += F.cross_entropy(model(images), labels)
print(f"loss {total / len(test_set):.1f}")

# sphinx_gallery_start_ignore
_no_limit()
assert total.grad_fn is None
# sphinx_gallery_end_ignore

# %%
# ``total += loss.item()`` also ends the error here: a number keeps no graph.
#
# In training, try in this order:
#
# 1. **Half the batch, twice**: :ref:`accumulate the gradients <sphx_glr_gallery_differentiation_accumulation.py>`. Layers and
#    losses that mix the samples, such as batch norm, then give other results.
# 2. **Autocast to bfloat16.**
# 3. **Checkpoint each block.** It costs a second forward pass.
# 4. **The weights and the optimizer**, if even a batch of 1 does not fit: see :ref:`the forecast
#    <sphx_glr_gallery_memory_forecast_a_training_step.py>`.
# 5. **Small pieces**: if free and unallocated memory together are *more* than the request, start the program with
#    ``PYTORCH_ALLOC_CONF=expandable_segments:True`` (older: ``PYTORCH_CUDA_ALLOC_CONF``). `It helps where sizes change
#    <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-envvars>`__ from step to step.
# 6. **Another program**, such as an old notebook: ``nvidia-smi`` lists what uses the GPU.
#
# Terabytes: a wrong shape
# ------------------------
# Here six million predictions of shape ``(n, 1)`` meet targets of shape ``(n,)``. The result would be ``(n, n)``:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    prediction, target = torch.ones(6_000_000, 1), torch.ones(6_000_000)
    loss = (prediction - target).square().mean()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and f"allocate {6_000_000**2 * 4} bytes" in raised[0]
# sphinx_gallery_end_ignore

# %%
# 4 bytes for each of n² numbers. Remove the dimension of 1:

loss = (prediction.squeeze(1) - target).square().mean()
print(loss.item())
assert loss == 0

# %%
# What not to do
# --------------
# **Do not rely on model.eval().** It records the graph all the same. The loop at the top raises with it, too.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_forecast_a_training_step.py`: what a training step takes.
# - :ref:`sphx_glr_gallery_cuda_no_grad_memory.py`: which batch fits in validation.
# - :ref:`sphx_glr_gallery_cuda_memory_snapshot.py`: allocated, reserved, and pieces that are too small.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: memory that grows from step to step.
# - In PyTorch's notes: `memory management
#   <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>`__.
