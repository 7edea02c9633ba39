r"""
Recomputed values for the following tensors have different metadata
===================================================================

.. index::
   ! single: A different number of tensors was saved during the original forward and recomputation
   ! single: gradient checkpointing fails in backward
   ! single: key-value cache and gradient checkpointing

A checkpointed block runs twice: once in the forward pass, once more in backward. The second run did not do the same
as the first, so what it computed is not what backward needs. Usually the block changes something outside of itself,
such as a cache, or asks a random generator that is not set back.
"""

# %%
# The shortest code that raises it
# --------------------------------

import random
import textwrap

import matplotlib.pyplot as plt
import torch
from torch.utils.checkpoint import checkpoint

cache = []


def block(x):
    cache.append(x)
    return torch.cat(cache).sin().sum()


def show(error):
    message = f"{type(error).__name__}: {error}"
    for line in message.partition("\n\nTip:")[0].splitlines():
        print(textwrap.fill(line, 88, subsequent_indent="    "))


x = torch.tensor([1.0, 2.0], requires_grad=True)
try:
    checkpoint(block, x, use_reentrant=False).backward()
except RuntimeError as error:
    show(error)
    assert "Recomputed values for the following tensors have different" in str(error)

# sphinx_gallery_start_ignore
kept = list(cache)
try:
    checkpoint(block, x, use_reentrant=False, debug=True).backward()
except RuntimeError as error:
    assert "Operations executed during the original forward" in str(error)
cache[:] = kept
# sphinx_gallery_end_ignore

# %%
# After this comes a long tip. Its first part is of use when the block is large: ``checkpoint(..., debug=True)`` lists
# the operations of both runs.

# %%
# Why
# ---
# A checkpoint keeps the inputs of the block and drops what the block would save. Backward calls the block again, to
# save it then. The first call left something in ``cache``, so the second finds two entries there, and computes twice
# as much. A model that keeps keys and values for generation fails in this way in training.

sizes = [torch.cat(cache[:calls]).numel() for calls in (1, 2)]

figure, ax = plt.subplots(figsize=(7, 1.8))
bars = ax.barh(["in forward", "in backward"], sizes, color=["#2563eb", "#c2410c"])
ax.bar_label(bars, padding=4)
ax.invert_yaxis()
ax.set_xlim(0, 5)
ax.set_xlabel("elements that the block saves")
ax.set_title("The same block, called twice")

# figure: Two bars. In forward the block saves 2 elements, in backward 4.

# sphinx_gallery_start_ignore
assert sizes == [2, 4] and len(cache) == 2
# sphinx_gallery_end_ignore

# %%
# If the second run saves fewer tensors than the first, the message is different, for the same reason. Here a layer
# is left out at random.


def sometimes(x, draw):
    x = x.sin()
    return x.exp() if draw() < 0.5 else x


random.seed(1)  # the first number is below 0.5, the second is not
try:
    checkpoint(sometimes, x, random.random, use_reentrant=False).sum().backward()
except RuntimeError as error:
    show(error)
    assert "A different number of tensors was saved" in str(error)

# %%
# The fix
# -------
# Give the block all that it depends on as arguments, and change things outside of it.


def pure_block(x, past):
    return torch.cat([*past, x]).sin().sum()


cache = []
checkpoint(pure_block, x, tuple(cache), use_reentrant=False).backward()
cache.append(x.detach())
print("x.grad =", x.grad)
assert torch.allclose(x.grad, torch.tensor([1.0, 2.0]).cos())

# %%
# ``checkpoint`` sets PyTorch's random generators back before the second run, and not Python's. So let the block draw
# with ``torch.rand``.


def gradients(run):
    torch.manual_seed(0)
    return [torch.autograd.grad(run(), x)[0] for _ in range(20)]


def draw():
    return torch.rand(())


plain = gradients(lambda: sometimes(x, draw).sum())
again = gradients(lambda: checkpoint(sometimes, x, draw, use_reentrant=False).sum())
same = [torch.equal(one, other) for one, other in zip(plain, again, strict=True)]
print(sum(same), "of", len(same), "gradients are equal")
assert all(same)

# sphinx_gallery_start_ignore
assert len({tuple(one.tolist()) for one in plain}) == 2
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# ``use_reentrant=True`` has no such check. It goes on with whatever the second run computed.

cache = []
x.grad = None
checkpoint(block, x, use_reentrant=True).backward()
print("x.grad =", x.grad, "  should be", x.detach().cos())
assert torch.allclose(x.grad, 2 * x.detach().cos())

# %%
# Even where the check runs, it compares shapes, types and devices, and no values. With ``preserve_rng_state=False`` a
# dropout inside the block draws a different mask in backward. Nothing is raised, and the gradient belongs to a
# different function.

torch.manual_seed(0)
x = torch.ones(1000, requires_grad=True)
options = {"use_reentrant": False, "preserve_rng_state": False}
y = checkpoint(lambda x: torch.dropout(x, 0.5, True).sin(), x, **options)
y.sum().backward()
other = ((y != 0) != (x.grad != 0)).sum().item()
print(other, "of", len(x), "elements: kept in one run, dropped in the other")
assert other > 400

# sphinx_gallery_start_ignore
torch.manual_seed(0)
options["preserve_rng_state"] = True
x.grad = None
y = checkpoint(lambda x: torch.dropout(x, 0.5, True).sin(), x, **options)
y.sum().backward()
assert torch.equal(y != 0, x.grad != 0)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`: what a checkpoint saves, and what it costs
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what a forward pass saves, and when it is freed
# - `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__ in PyTorch's reference
