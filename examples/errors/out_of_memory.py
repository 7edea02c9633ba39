r"""
CUDA out of memory. Tried to allocate
=====================================

.. index::
   ! single: DefaultCPUAllocator: can't allocate memory
   ! single: reserved by PyTorch but unallocated
   ! single: torch.OutOfMemoryError

.. in-short::

   There is no room for one more tensor. In validation, turn off the graph, as below. In training, use a smaller batch first,
   then bfloat16, then checkpointing. A size of terabytes often means a wrong shape.

   .. code-block:: diff

        total = 0
      + with torch.no_grad():
            for images, labels in test_set:
                total += F.cross_entropy(model(images), labels)

   **Not this:** ``torch.cuda.empty_cache()`` in the loop. It does not free any tensor.
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
# The loop below may use 512 MiB of the GPU. This site is built on a CPU, with a different message:

# This needs a GPU.
import torch
import torch.nn.functional as F
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import gc
import resource
import warnings
import weakref
from pathlib import Path

_before = resource.getrlimit(resource.RLIMIT_AS)
F.cross_entropy(nn.Linear(64, 2048)(torch.ones(1024, 64)), torch.zeros(1024).long())


def _limit(more):
    """On a CPU, let this process take so many bytes more; None takes the limit away."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if not torch.cuda.is_available():
        most = _before[0] if more is None else used + more
        resource.setrlimit(resource.RLIMIT_AS, (most, _before[1]))


_limit(100 * 2**20)
try:
    # sphinx_gallery_end_ignore
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        total_memory = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction(2**29 / total_memory)
    batch = torch.randn(1024, 64).to(device), torch.randint(10, (1024,)).to(device)
    test_set = [batch] * 150
    model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 10)).to(
        device
    )

    total = 0
    for images, labels in test_set:
        total += F.cross_entropy(model(images), labels)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
_limit(None)
print("RuntimeError:", message)
_said = (
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8388608 bytes"
)
assert ("CUDA out of memory" if device == "cuda" else _said) in message
del total


def _fits(number):
    """Whether the loop stays within the limit if it adds up what ``number`` makes of each loss."""
    total = 0
    _limit(100 * 2**20)
    try:
        for images, labels in test_set:
            total = total + number(F.cross_entropy(model(images), labels))
    except RuntimeError:
        return False
    finally:
        _limit(None)
    return True


model.eval()
assert [_fits(one) for one in (lambda x: x, torch.Tensor.item)] == [False, True]
assert "doesn't increase the amount of GPU" in torch.cuda.empty_cache.__doc__
_weight = torch.nn.Parameter(torch.ones(3))
_adam = torch.optim.Adam([_weight])
_weight.sum().backward()
assert not _adam.state
_adam.step()
assert sum(one.shape == _weight.shape for one in _adam.state[_weight].values()) == 2
_frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
_adam = torch.optim.Adam([_frozen, _weight])
_adam.step()
assert _frozen not in _adam.state and _weight in _adam.state
_halved = nn.Linear(3, 2)
_bytes = _halved.weight.nbytes
assert _halved.to(torch.bfloat16).weight.nbytes == _bytes / 2


def _train(layers):
    layer = nn.Linear(3, 2)
    adam = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    adam.step()
    layers.append(weakref.ref(layer.weight))
    raise RuntimeError("out of memory")


_held = []
try:
    _train(_held)
except RuntimeError:
    _in_except = _held[0]() is not None
gc.collect()
assert _in_except and _held[0]() is None
for _detached in (True, False):  # a state that goes from step to step
    _cell, _state, _steps = nn.GRUCell(3, 2), torch.zeros(1, 2), []
    for _ in range(2):
        _state = _state.detach() if _detached else _state
        _inputs = torch.ones(1, 3) * 1
        _steps.append(weakref.ref(_inputs))
        _state = _cell(_inputs, _state)
        _state.sum().backward(retain_graph=True)
        del _inputs
    gc.collect()
    assert (_steps[0]() is None) == _detached
del _cell, _state
# a retry after an error in backward, the penalty in two ways, and validation without eval()
_retried, _few = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), []
_batch = torch.randn(8, 3)


def _gradient(loss):
    _retried.zero_grad()
    loss().backward()
    return _retried[2].weight.grad.clone()


def _fails(gradient):
    raise torch.OutOfMemoryError


_whole = _gradient(lambda: _retried(_batch).square().mean())
for _zeroed in (False, True):
    _retried.zero_grad()
    try:
        _hidden = _retried[0](_batch)
        _hidden.register_hook(_fails)
        _retried[2](_retried[1](_hidden)).square().mean().backward()
    except torch.OutOfMemoryError:
        _few.append(_zeroed)
    if _zeroed:
        _retried.zero_grad()
    for _half in _batch.chunk(2):
        (_retried(_half).square().mean() / 2).backward()
    _found = _retried[2].weight.grad
    assert torch.allclose(_found, _whole, atol=1e-6) == _zeroed
assert _few == [False, True]


def _penalized(by_hand):
    model = _retried
    loss = model(_batch).square().mean()
    if by_hand:
        found = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    else:
        with warnings.catch_warnings(action="ignore"):
            loss.backward(create_graph=True)
        found = [p.grad for p in model.parameters()]
        loss = 0
    return loss + sum(one.square().sum() for one in found)


assert torch.allclose(
    _gradient(lambda: _penalized(True)), _gradient(lambda: _penalized(False)), atol=1e-6
)
for _evaluates in (False, True):
    _norm = nn.BatchNorm1d(3).train(not _evaluates)
    with torch.no_grad():
        _norm(_batch)
    assert _norm.running_mean.any() != _evaluates
_retried.zero_grad()
_loop, _graphs = nn.Linear(3, 1), []
for _way in ("backward", "grad"):
    _inputs = torch.ones(1, 3) * 1
    _loss = _loop(_inputs).exp().sum()
    if _way == "backward":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of the reference cycle
            _loss.backward(create_graph=True)
    else:
        _penalty = torch.autograd.grad(_loss, _loop.weight, create_graph=True)[0]
        _penalty.square().sum().backward()
        del _penalty
    _graphs.append(weakref.ref(_inputs))
    del _inputs, _loss
    gc.collect()
    assert (_graphs[-1]() is None) == (_way == "grad"), _way
    _loop.zero_grad()
del _loop
# sphinx_gallery_end_ignore

# %%
# In the GPU's message:
#
# - **22.78 GiB**: the *one* tensor for which there was no room.
# - **9.08 GiB**: memory in use by tensors.
# - **9.35 GiB**: memory held for later tensors, maybe in too small pieces. Older messages say *reserved in total*: subtract
#   what is allocated.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 42 58
#
#    * - the frame
#      - the cause
#    * - ``model.to("cuda")`` or ``from_pretrained``
#      - The weights do not fit: for inference or LoRA, load them in bfloat16 or in 4 bits. Or another program uses the GPU
#        (``nvidia-smi``).
#        With DDP, call ``torch.cuda.set_device(local_rank)`` first.
#    * - inference, such as ``generate`` or a pipeline of Diffusers
#      - Use ``torch.no_grad()``, bfloat16 weights, a smaller image or text.
#    * - ``torch.load``, when you resume
#      - The file goes onto the GPU beside the model: ``map_location="cpu"``.
#    * - ``forward`` or ``backward`` of the first step
#      - The batch is too large, or the sequence too long.
#    * - the first ``optimizer.step()``
#      - There is no room for the optimizer's state. Adam makes two tensors for each weight that is trained: LoRA trains few.
#    * - after some steps, more each time
#      - A tensor with a graph is kept, as by ``total += loss``: to report it, add ``loss.item()``. Or by a state of the step
#        before: ``detach()`` it. Instead of ``loss.backward(create_graph=True)``, call
#        ``torch.autograd.grad(loss, list(model.parameters()), create_graph=True)``.
#    * - after some steps, at random
#      - One batch has a longer sequence or more boxes.
#    * - the validation
#      - Often ``torch.no_grad()`` is missing. Or all predictions stay on the GPU: keep ``output.cpu()``. In a ``Trainer``:
#        ``eval_accumulation_steps=1``, and take the ``argmax`` in ``preprocess_logits_for_metrics`` instead of
#        ``compute_metrics``.
#    * - a second model, as in cross-validation, or a retry
#      - The first is still held: by a name, by its optimizer, or in ``except`` by the exception. Train in a function, and retry
#        after ``except``, from ``zero_grad()`` on.
#
# Why
# ---
# Forward keeps the tensors that backward will need, and ``backward()`` frees them. Validation calls no backward. ``total`` is a
# tensor with a graph, so the graph of each batch stays.
#
# The fix
# -------
# **In validation,** turn off the graph:

# sphinx_gallery_start_ignore
_limit(100 * 2**20)
# sphinx_gallery_end_ignore
total = 0
with torch.no_grad():
    for images, labels in test_set:
        total += F.cross_entropy(model(images), labels)
print("has a graph:", total.requires_grad)

# sphinx_gallery_start_ignore
_limit(None)
assert not total.requires_grad
# sphinx_gallery_end_ignore

# %%
# Call ``model.eval()``, too. Alone, it still records.
#
# **In training,** try these in this order. The first :ref:`accumulates the gradients
# <sphx_glr_gallery_differentiation_accumulation.py>`, and is right for a mean over samples without class weights or batch norm.
# That page also has the mean over tokens.

from torch.utils.checkpoint import checkpoint


def half_the_batch_twice(model, images):
    for half in images.chunk(2):
        (model(half).mean() * len(half) / len(images)).backward()


def bfloat16(model, images):
    with torch.autocast(images.device.type, torch.bfloat16):
        loss = model(images).mean()
    loss.backward()


def checkpoint_each_block(model, images):  # runs forward, and batch norm, twice
    for block in model:
        images = checkpoint(block, images, use_reentrant=False)
    images.mean().backward()


# sphinx_gallery_start_ignore
def _halves_agree(layer, number=8):
    batch = torch.randn(number, 3)
    layer(batch).mean().backward()
    whole = next(layer.parameters()).grad.clone()
    layer.zero_grad()
    half_the_batch_twice(layer, batch)
    return torch.allclose(next(layer.parameters()).grad, whole, atol=1e-5)


_tail = nn.Linear(3, 3), nn.GELU()
for _number in (8, 7, 1):
    _norm = nn.LayerNorm(3)
    assert _halves_agree(nn.Sequential(nn.Linear(3, 3), _norm, *_tail), _number)
assert not _halves_agree(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), *_tail))
_layer, _few = nn.Linear(3, 2), torch.randn(4, 3)
_two = torch.tensor([0, 0, 1, 1])
_class_weights = torch.tensor([1.0, 9.0])
_whole = F.cross_entropy(_layer(_few), _two, _class_weights)
_halves = [
    F.cross_entropy(_layer(half), two, _class_weights) / 2
    for half, two in zip(_few.chunk(2), _two.chunk(2), strict=True)
]
assert not torch.allclose(sum(_halves), _whole)
_norm = nn.BatchNorm1d(3)
checkpoint_each_block(nn.Sequential(nn.Linear(3, 3), _norm, *_tail), torch.randn(8, 3))
assert _norm.num_batches_tracked == 2
# sphinx_gallery_end_ignore

# %%
# The peak of eight blocks, as predicted from the shapes:
#
# .. how-measured:: This code adds up the storages of fake tensors, which have shapes and no data.

import weakref

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Peak(TorchDispatchMode):
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


def peak_in_mib(way):
    with FakeTensorMode(), Peak() as meter:
        blocks = [nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)]
        way(nn.Sequential(*blocks), torch.randn(8192, 512))
    return meter.most / 2**20


# %%
# The first bar is ``model(images).mean().backward()``.

import matplotlib.pyplot as plt


def as_it_is(model, images):
    model(images).mean().backward()


# figure: Bars of the peak of one pass. As it is 296 MiB, half the batch twice 168, bfloat16 172, a checkpoint for each
#   block 200.
ways = as_it_is, half_the_batch_twice, bfloat16, checkpoint_each_block
peaks = {way.__name__.replace("_", " "): peak_in_mib(way) for way in ways}
fig, ax = plt.subplots(figsize=(7, 1.8), layout="constrained")
bars = ax.barh(list(peaks), peaks.values(), color=["#c2410c"] + 3 * ["#2563eb"])
ax.bar_label(bars, fmt="%.0f", padding=3)
ax.set(xlabel="MiB", xlim=(0, 340), title="Eight blocks, 8192 samples: the peak")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert [round(size) for size in peaks.values()] == [296, 168, 172, 200], peaks
# sphinx_gallery_end_ignore

# %%
# Then look at:
#
# - **The weights and the optimizer**, if even a batch of 1 does not fit: see :ref:`the forecast
#   <sphx_glr_gallery_memory_forecast_a_training_step.py>`.
# - **Small pieces**: if free and unallocated memory together are *more* than the request, start the program with
#   ``PYTORCH_ALLOC_CONF=expandable_segments:True`` (older: ``PYTORCH_CUDA_ALLOC_CONF``) under Linux.
#
# Terabytes: a wrong shape
# ------------------------
# Six million predictions of shape ``(n, 1)`` meet targets of shape ``(n,)``. The result would be ``(n, n)``:

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
# Remove the dimension of 1:

loss = (prediction.squeeze(1) - target).square().mean()
print(loss.item())
assert loss == 0

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_no_grad_memory.py`.
# - :ref:`sphx_glr_gallery_cuda_memory_snapshot.py`.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`.
# - In PyTorch's notes: `memory management
#   <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>`__.
