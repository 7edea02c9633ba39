r"""
Recomputed values for the following tensors have different metadata
===================================================================

.. index::
   ! single: A different number of tensors was saved during the original forward and recomputation
   ! single: gradient checkpointing fails in backward
   ! single: key-value cache and gradient checkpointing
   ! single: saved metadata has dtype float32, recomputed metadata has dtype bfloat16

.. in-short::

   A checkpointed block runs twice, in the forward pass and in backward. The second run did something else, often because the
   first run changed a cache. Pass to the block what it depends on, and change nothing outside of it.

   .. code-block:: diff

      - def block(x):
      -     cache.append(x)
      -     keys = torch.cat(cache)
      + def block(x, past):
      +     keys = torch.cat([*past, x])
            return layer(keys).sum()

   **Not this:** ``use_reentrant=True``. It compares nothing, and computes the gradient of the second run.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)

# sphinx_gallery_start_ignore
from functools import partial

raised = []


def _show(error):
    print(f"{type(error).__name__}: {error}".partition("\n\nTip:")[0])


try:
    # sphinx_gallery_end_ignore
    layer = nn.Linear(2, 2)
    cache = []

    def block(x):
        cache.append(x)
        keys = torch.cat(cache)
        return layer(keys).sum()

    x = torch.ones(3, 2, requires_grad=True)
    loss = checkpoint(block, x, use_reentrant=False)
    loss.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    _show(error)
assert len(raised) == 1 and raised[0].startswith(
    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward"
)
assert "saved metadata: {'shape': torch.Size([3, 2])" in raised[0]
assert (
    "recomputed metadata: {'shape': torch.Size([6, 2])" in raised[0]
    and "position 1" not in raised[0]
)
assert "pass `debug=True`" in raised[0].partition("\n\nTip:")[2]


def _said(run):
    try:
        run()
    except RuntimeError as error:
        return str(error)
    return None


# sphinx_gallery_end_ignore

# %%
# - ``tensor at position 0``: the first tensor that the block saved for backward, here the input of ``layer``.
# - ``saved`` and ``recomputed metadata``: shape, type and device in the first and in the second run. The shape is often enough:
#   6 rows in place of 3 is a cache that grew. With DeepSpeed ZeRO-3, ``[0]`` is often a frozen weight that it has freed: update
#   DeepSpeed, or use ZeRO-2. If only the dtype differs, see :ref:`below <checkpoint-dtype>`.
# - ``checkpoint(..., debug=True)``, or ``set_checkpoint_debug_enabled(True)`` around a library's forward pass, lists the
#   operations of both runs, with stack traces. Without them:

cache = []
try:
    checkpoint(block, x, use_reentrant=False, debug=True).backward()
except RuntimeError as error:
    log = str(error)
    for line in log.splitlines():
        if line.startswith("$") and " of " in line:
            print(line.replace("torch._ops.", ""))

# sphinx_gallery_start_ignore
assert "Operations executed during the original forward" in log
assert "Operations executed during recomputation" in log
assert "(1 of 4 in original)" in log and "f32[6, 2]" in log
cache.clear()
with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
    _loss = checkpoint(block, x, use_reentrant=False)
assert "Operations executed during recomputation" in _said(_loss.backward)
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# A checkpoint keeps the inputs of the block and drops what the block would save. Backward calls the block again to get that.
# The first call left ``x`` in ``cache``, so the second call finds two entries there. A language model that keeps keys and
# values for generation does this in training.

import matplotlib.pyplot as plt

cache, rows = [], []
for _ in range(2):
    cache.append(x)
    rows.append(len(torch.cat(cache)))

# figure: Two bars. In forward the layer gets 3 rows, in backward 6.
fig, ax = plt.subplots(figsize=(7, 1.6), layout="constrained")
bars = ax.barh(["in forward", "in backward"], rows, color=["#2563eb", "#c2410c"])
ax.bar_label(bars, padding=4)
ax.invert_yaxis()
ax.set(xlim=(0, 7), xlabel="rows that the layer gets and saves")
ax.set_title("The same block, called twice")

# sphinx_gallery_start_ignore
assert rows == [3, 6]
# sphinx_gallery_end_ignore

# %%
# If the second run saves *fewer* tensors, the message is different. Here a layer is left out at random:

import random

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    random.seed(1)  # the first number is below 0.5, the second is not

    def sometimes(x):
        x = x.sin()
        return x.exp() if random.random() < 0.5 else x

    checkpoint(sometimes, x, use_reentrant=False).sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    _show(error)
assert (
    len(raised) == 2
    and "A different number of tensors was saved during the original forward and"
    in raised[1]
)
x.grad = None
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **A cache:** switch it off in training. In Hugging Face models that is ``use_cache=False``. Compare the loss: Gemma 3n
# needs its cache. Or pass it to the block, and add to it outside. Pass a copy, here a tuple: a list would have grown until the
# second run.


def block(x, past):
    keys = torch.cat([*past, x])
    return layer(keys).sum()


cache = []
loss = checkpoint(block, x, tuple(cache), use_reentrant=False)
cache.append(x)
loss.backward()
print("x.grad:", x.grad[0])

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, layer.weight.detach().sum(0).expand(3, 2))
_expected = x.grad.clone()


def _listed():
    past = []
    loss = checkpoint(block, x, past, use_reentrant=False)
    past.append(x)
    loss.backward()


assert "have different metadata than during" in _said(_listed)


def _chunks(run):
    """The gradient of a layer before the block, which the second chunk reaches through the cache."""
    past, total, before = [], 0, nn.Linear(2, 2, bias=False)
    nn.init.eye_(before.weight)
    for _ in range(2):
        x = before(torch.eye(3, 2)).sin()
        total = total + run(lambda *args: block(*args).square(), x, tuple(past))
        past.append(x)
    total.backward()
    return before.weight.grad


assert torch.allclose(
    _chunks(partial(checkpoint, use_reentrant=False)),
    _chunks(lambda run, *args: run(*args)),
)
# sphinx_gallery_end_ignore

# %%
# **Random numbers:** use PyTorch's global generator, as ``torch.rand`` does. ``checkpoint`` resets it before the second run,
# but not the generators of Python and NumPy, and not your own ``torch.Generator``.
#
# **A lambda in a loop:** ``checkpoint(lambda x: layer(x), x)`` runs the last layer in backward, often without a message. Write
# ``checkpoint(layer, x, use_reentrant=False)``.
#
# **A choice of experts** can flip on a GPU. Make it outside, and pass it to the block.
#
# **A compiled function in the block:** compile the whole model, which calls ``checkpoint``, instead.
#
# **A context that ends too early:** call ``backward()`` inside of ``context_parallel`` or ``sdpa_kernel``, too.
#
# **A switch between forward and backward:** freeze layers, change an adapter or call ``model.eval()`` after ``backward()``. A
# batch norm in evaluation saves no statistics:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4))
    loss = checkpoint(model, x, use_reentrant=False).sum()
    model.eval()
    loss.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    _show(error)
assert (
    len(raised) == 3
    and "have different metadata than during the forward pass" in raised[2]
)
assert "torch.Size([4])" in raised[2] and "torch.Size([0])" in raised[2]
model.train()
assert _said(lambda: checkpoint(model, x, use_reentrant=False).sum().backward()) is None
_own = torch.Generator().manual_seed(0)


def _agrees(draw):
    """Whether the two runs of a checkpoint agree on what was drawn."""
    drawn = []

    def drop(x):
        drawn.append(float(draw()))
        return x.sin()

    checkpoint(drop, x, use_reentrant=False).sum().backward()
    assert len(drawn) == 2
    return drawn[0] == drawn[1]


_layers = [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 2)]
_same = [nn.Linear(2, 2) for _ in range(3)]
_run = partial(checkpoint, use_reentrant=False)


def _loop(layers, wrap):
    """The gradients of layers in a loop, each called as ``wrap`` calls it."""
    for module in layers:
        module.zero_grad()
    hidden = torch.linspace(-1, 1, 6).view(3, 2).requires_grad_()
    for layer in layers:
        hidden = wrap(layer, hidden)
    hidden.square().sum().backward()
    return [p.grad.clone() for module in layers for p in module.parameters()]


def _late(layers):
    hidden = torch.linspace(-1, 1, 6).view(3, 2).requires_grad_()
    for layer in layers:
        hidden = _run(lambda x: layer(x), hidden)  # noqa: B023
    for module in layers:
        module.zero_grad()
    hidden.square().sum().backward()
    return [p.grad.clone() for module in layers for p in module.parameters()]


for _some in (_same, _layers):
    _right = _loop(_some, lambda layer, x: layer(x))
    assert all(map(torch.allclose, _loop(_some, _run), _right))
assert "A different number of tensors" in _said(lambda: _late(_layers))
_right = _loop(_same, lambda layer, x: layer(x))
assert not all(map(torch.allclose, _late(_same), _right))


def _experts(x, choice=None):
    choice = next(_flips) if choice is None else choice
    return sum(_layers[i](x[choice == i]).sin().sum() for i in range(2))


_choices = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
_flips = iter(_choices)
assert "different metadata" in _said(lambda: _run(_experts, x).backward())
_grads = [
    torch.autograd.grad(call(_experts, x, _choices[0]), x)[0]
    for call in (_run, lambda function, *args: function(*args))
]
assert torch.allclose(*_grads)


def _frozen():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    loss = _run(net, x).sum()
    net.requires_grad_(False)
    loss.backward()


assert "A different number of tensors" in _said(_frozen)
from torch.nn.attention import SDPBackend, sdpa_kernel

_attend = nn.functional.scaled_dot_product_attention


def _in_context(inside):
    q = torch.rand(1, 2, 4, 8, requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH):
        loss = _run(lambda q: _attend(q, q, q), q).square().sum()
        if inside:
            loss.backward()
    loss = loss if not inside else _attend(q, q, q).square().sum()
    assert inside == (q.grad is not None)
    (grad,) = torch.autograd.grad(loss, q)
    assert torch.allclose(grad, q.grad, atol=1e-5)


assert "different metadata" in _said(lambda: _in_context(False))
assert _said(lambda: _in_context(True)) is None
_whole = torch.compile(lambda x: _run(_layers[1], x), backend="aot_eager")
for _rows in (3, 2, 5):  # checkpoint inside of what is compiled
    _in = torch.rand(_rows, 2)
    _grads = [
        torch.autograd.grad(call(_in).square().sum(), [*_layers[1].parameters()])
        for call in (_whole, _layers[1])
    ]
    assert all(map(torch.allclose, *_grads))
x.grad = None
assert _agrees(lambda: torch.rand(()))
assert not _agrees(random.random)
assert not _agrees(lambda: torch.rand((), generator=_own))
# sphinx_gallery_end_ignore

# %%
# .. _checkpoint-dtype:
#
# Only the dtype differs
# ----------------------
# ``checkpoint`` restores an ``autocast`` around
# its call, but not a flag by which the block itself decides. Pass the flag as an argument:


def block(x, mixed):
    with torch.autocast(x.device.type, torch.bfloat16, enabled=mixed):
        return layer(x).float().sum()


mixed = True
loss = checkpoint(block, x, mixed, use_reentrant=False)
mixed = False
x.grad = None
loss.backward()
print("x.grad:", x.grad[0])

# sphinx_gallery_start_ignore
(_plain,) = torch.autograd.grad(block(x, True), x)
assert torch.equal(x.grad, _plain)
_saved = {True: "torch.bfloat16", False: "torch.float32"}
for _first in (True, False):
    _switch = {"mixed": _first}
    _loss = checkpoint(
        lambda x, on=_switch: block(x, on["mixed"]), x, use_reentrant=False
    )
    _switch["mixed"] = not _first
    _lines = _said(_loss.backward).splitlines()[2:4]
    _lines = [line.partition("metadata: ")[2] for line in _lines]
    assert _lines[0] == _lines[1].replace(_saved[not _first], _saved[_first])
    assert _lines[0] != _lines[1]
for _outside in (True, False):  # autocast around the call, in one run only
    with torch.autocast("cpu", torch.bfloat16, enabled=_outside):
        _loss = checkpoint(lambda x: layer(x).float().sum(), x, use_reentrant=False)
    with torch.autocast("cpu", torch.bfloat16, enabled=not _outside):
        assert torch.equal(
            torch.autograd.grad(_loss, x)[0],
            torch.autograd.grad(block(x, _outside), x)[0],
        )
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Set** ``use_reentrant=True``. It checks nothing. Here each gradient is twice what it should be:


def block(x):
    cache.append(x)
    keys = torch.cat(cache)
    return layer(keys).sum()


cache = []
x.grad = None
checkpoint(block, x, use_reentrant=True).backward()
print("x.grad:", x.grad[0])

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, 2 * _expected)
# sphinx_gallery_end_ignore

# %%
# **Set** ``determinism_check="none"``. The two runs still differ, so the gradient can be wrong, as this one, which should be 1:


def sine_of_all(x):
    cache.append(x)
    return torch.cat(cache).sin().sum()


cache, zero = [], torch.zeros(1, requires_grad=True)
checkpoint(sine_of_all, zero, use_reentrant=False, determinism_check="none").backward()
print("zero.grad:", zero.grad)

# sphinx_gallery_start_ignore
assert zero.grad == 2
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`: what a checkpoint saves, and what it costs.
# - :ref:`sphx_glr_gallery_memory_selective_checkpointing.py`: messages of a checkpoint with a ``context_fn``.
