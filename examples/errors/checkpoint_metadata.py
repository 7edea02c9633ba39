r"""
Recomputed values for the following tensors have different metadata
===================================================================

.. index::
   ! single: A different number of tensors was saved during the original forward and recomputation
   ! single: gradient checkpointing fails in backward
   ! single: key-value cache and gradient checkpointing

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
import matplotlib.pyplot as plt
import numpy as np


def _show(error):
    print(f"{type(error).__name__}: {error}".partition("\n\nTip:")[0])


raised = []
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


cache.clear()
_debug = _said(lambda: checkpoint(block, x, use_reentrant=False, debug=True).backward())
assert "Operations executed during the original forward" in _debug
assert "Operations executed during recomputation" in _debug
# sphinx_gallery_end_ignore

# %%
# - ``tensor at position 0``: the first tensor that the block saved for backward. Here it is the input of ``layer``.
# - ``saved`` and ``recomputed metadata``: shape, type and device in the first and in the second run. The shape is often enough:
#   6 rows in place of 3 is a cache that grew.
# - After this comes a long tip. Its first part is of use when the block is large: ``checkpoint(..., debug=True)`` lists the
#   operations of both runs.
#
# Why
# ---
# A checkpoint keeps the inputs of the block and drops what the block would save. Backward calls the block again, to save it
# then. The first call left ``x`` in ``cache``, so the second call finds two entries there. A language model that keeps keys and
# values for generation does this in training.


# sphinx_gallery_start_ignore
def draw(rows):
    figure, ax = plt.subplots(figsize=(7, 1.6))
    bars = ax.barh(["in forward", "in backward"], rows, color=["#2563eb", "#c2410c"])
    ax.bar_label(bars, padding=4)
    ax.invert_yaxis()
    ax.set_xlim(0, 7)
    ax.set_xlabel("rows that the layer gets and saves")
    ax.set_title("The same block, called twice")
    figure.tight_layout()


# sphinx_gallery_end_ignore
# figure: Two bars. In forward the layer gets 3 rows, in backward 6.
rows = [torch.cat([x] * calls).shape[0] for calls in (1, 2)]
draw(rows)

# sphinx_gallery_start_ignore
assert rows == [3, 6] and len(cache) == 2
# sphinx_gallery_end_ignore

# %%
# If the two runs save a different *number* of tensors, you read another message, for the same reason. Here a layer is left out
# at random:

import random

# sphinx_gallery_start_ignore
random.seed(1)  # the first number is below 0.5, the second is not
try:
    # sphinx_gallery_end_ignore
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

_calls = []


def _more(x):
    _calls.append(x)
    return x.sin().exp() if len(_calls) == 2 else x.sin()


assert (
    "trying to save more tensors during recomputation than during the original forward pass"
    in _said(
        lambda: (
            checkpoint(_more, x, use_reentrant=False, early_stop=False).sum().backward()
        )
    )
)
# sphinx_gallery_end_ignore

# %%
# The same fault can also read *trying to save more tensors during recomputation than during the original forward pass*.
#
# The fix
# -------
# **A cache:** pass it to the block, and add to it outside. Pass a copy, here a tuple: a list would have grown until the second
# run. Or switch the cache off in training. In Hugging Face models that is ``use_cache=False``.


def block(x, past):
    keys = torch.cat([*past, x])
    return layer(keys).sum()


cache = []
loss = checkpoint(block, x, tuple(cache), use_reentrant=False)
cache.append(x.detach())
loss.backward()
print("x.grad:", x.grad[0])

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, layer.weight.detach().sum(0).expand(3, 2))
_expected = x.grad.clone()


def _listed():
    past = []
    loss = checkpoint(block, x, past, use_reentrant=False)
    past.append(x.detach())
    loss.backward()


assert "have different metadata than during" in _said(_listed)
# sphinx_gallery_end_ignore

# %%
# **Chance:** draw with ``torch.rand`` and the like. ``checkpoint`` sets PyTorch's own generators back before the second run,
# but not those of Python and NumPy, and not a ``torch.Generator`` that you made. If the router of a mixture of experts adds
# noise from one of these, the experts get other rows in the second run.
#
# **A switch between forward and backward:** call ``model.eval()`` after ``backward()``. A batch norm in evaluation saves no
# statistics, and you read ``[4]`` and ``[0]``:

# sphinx_gallery_start_ignore
_own = torch.Generator().manual_seed(0)
_numbers = np.random.default_rng(0)
random.seed(0)


def _agrees(draw):
    """Whether the two runs of a checkpoint agree on what was drawn, in each of 20 trials."""
    agree = []
    for _ in range(20):
        drawn = []

        def drop(x, drawn=drawn):
            drawn.append(float(draw()))
            return x.sin()

        checkpoint(drop, x, use_reentrant=False).sum().backward()
        assert len(drawn) == 2
        agree.append(drawn[0] == drawn[1])
    return all(agree)


assert _agrees(lambda: torch.rand(())) and _agrees(
    lambda: torch.dropout(torch.ones(20), 0.5, True).sum()
)
assert not _agrees(random.random) and not _agrees(_numbers.random)
assert not _agrees(lambda: torch.rand((), generator=_own))


class _Experts(nn.Module):
    def __init__(self, generator):
        super().__init__()
        self.generator = generator
        self.router, self.experts = (
            nn.Linear(2, 2),
            nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]),
        )

    def forward(self, x):
        noise = 3 * torch.randn(x.shape[0], 2, generator=self.generator)
        chosen = (self.router(x) + noise).argmax(1)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            result = result.index_add(
                0, (chosen == i).nonzero().flatten(), expert(x[chosen == i])
            )
        return result


_tokens = torch.randn(16, 2, requires_grad=True)


def _outcomes(generator):
    model = _Experts(generator)
    return {
        _said(lambda: checkpoint(model, _tokens, use_reentrant=False).sum().backward())
        for _ in range(20)
    }


assert _outcomes(None) == {None}
assert any("have different metadata than during" in str(one) for one in _outcomes(_own))
# sphinx_gallery_end_ignore

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
# sphinx_gallery_end_ignore

# %%
# **Shape [0] for frozen weights,** with LoRA and DeepSpeed ZeRO-3: such a weight is spread over the GPUs again when the block
# runs for the second time (`transformers#47254 <https://github.com/huggingface/transformers/issues/47254>`__; this build cannot
# show it). Your code is not at fault. DeepSpeed 0.19.3 is the first with `a change for this
# <https://github.com/deepspeedai/DeepSpeed/pull/8148>`__.
#
# What not to do
# --------------
# **Set** ``use_reentrant=True``. It has no such check. Here each gradient is twice what it should be:


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
cache = []
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_operator = "mm: " if TORCH >= (2, 15) else ""
assert (
    _said(
        lambda: checkpoint(
            block, x, use_reentrant=False, determinism_check="none"
        ).backward()
    )
    == f"{_operator}mat1 and mat2 shapes cannot be multiplied (2x3 and 6x2)"
)
# sphinx_gallery_end_ignore

# %%
# **Set** ``determinism_check="none"``. The two runs still differ. Here backward then fails in the layer, with ``mat1 and mat2
# shapes cannot be multiplied (2x3 and 6x2)``.
#
# **Rely on the check alone.** It compares shapes, types and devices, and no values. With ``preserve_rng_state=False``
# a dropout draws another mask in backward. Nothing is raised, and the gradient belongs to a different function.

ones = torch.ones(1000, requires_grad=True)
options = {"use_reentrant": False, "preserve_rng_state": False}
y = checkpoint(lambda x: torch.dropout(x, 0.5, True).sin(), ones, **options)
y.sum().backward()
print("kept in one run only:", ((y != 0) != (ones.grad != 0)).sum().item(), "of 1000")

# sphinx_gallery_start_ignore
assert ((y != 0) != (ones.grad != 0)).sum() > 400
ones.grad = None
options["preserve_rng_state"] = True
y = checkpoint(lambda x: torch.dropout(x, 0.5, True).sin(), ones, **options)
y.sum().backward()
assert torch.equal(y != 0, ones.grad != 0)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`: what a checkpoint saves, and what it costs.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what a forward pass saves, and when it is freed.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__.
