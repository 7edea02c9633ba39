r"""
a leaf Variable that requires grad is being used in an in-place operation
=========================================================================

.. index::
   ! single: a leaf Variable that requires grad has been used in an in-place operation
   ! single: updating a weight by hand with -= raises
   ! single: manual gradient descent without an optimizer changes nothing

A parameter, or an input whose gradient you want, is written to: ``w -= lr * w.grad``, ``x += noise``, ``w.fill_(0)``.
Usually the write is an update, which is no part of the loss, and the fix is to say so with ``no_grad``.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

w = torch.tensor(1.0, requires_grad=True)
try:
    w += 1
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("a leaf Variable that requires grad is being used")
print("w is still", w.item())
assert w == 1

# %%
# Earlier versions said *a leaf Variable that requires grad has been used in an in-place operation*.

# %%
# Why
# ---
# A leaf is where a graph begins, and where backward leaves the gradient. It is a leaf because no operation computed
# it.

loss = (w - 3) ** 2
loss.backward()
print(f"w = {w.item()}, w.grad = {w.grad.item()}")

# graph: loss -- The graph begins at the leaf w, and backward stores the gradient there

# sphinx_gallery_start_ignore
assert w.grad == -4 and w.is_leaf
# sphinx_gallery_end_ignore

# %%
# A recorded ``w += 1`` would make ``w`` the result of an addition, and the beginning of the graph would have no name
# any more. PyTorch cannot know whether you want that or a plain change of the value, so it refuses.

# %%
# The fix
# -------
# For an update, say that it is not to be recorded. ``w`` stays the same tensor and stays a leaf.

for _ in range(20):
    w.grad = None
    loss = (w - 3) ** 2
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
print(f"w = {w.item():.4f}, is_leaf {w.is_leaf}, requires_grad {w.requires_grad}")
assert w.is_leaf and w.requires_grad and abs(w - 3) < 0.05

# sphinx_gallery_start_ignore
assert abs(w.item() - (3 - 2 * 0.8**20)) < 1e-5
# sphinx_gallery_end_ignore

# %%
# If the change belongs to the computation, as with noise that is added to an input, make a new tensor. The gradient
# then goes through it to the leaf.

x = torch.tensor(2.0, requires_grad=True)
noisy = x + 0.5
(noisy**2).backward()
print("x.grad =", x.grad.item())
assert x.grad == 2 * 2.5

# %%
# What not to do
# --------------
# **Write** ``w = w - lr * w.grad`` **for an update.** The message is gone, and so is the leaf: the name ``w`` now
# means a result. On the second round it has no gradient.

import warnings

w = torch.tensor(1.0, requires_grad=True)
try:
    for _ in range(2):
        loss = (w - 3) ** 2
        loss.backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # w.grad of a non-leaf also warns
            w = w - 0.1 * w.grad
except TypeError as error:
    print("TypeError:", error)
    assert "NoneType" in str(error)
print(f"w = {w.item():.4f}, is_leaf {w.is_leaf}")
assert not w.is_leaf

# graph: w -- The name w stands at the end of the graph; the leaf with the gradient has no name left

# %%
# In a loop over parameters the same line raises nothing. It gives the name ``p`` to a new tensor, and the model keeps
# the old one: nothing is learned.

w = torch.tensor(1.0, requires_grad=True)
losses = []
for _ in range(3):
    w.grad = None
    loss = (w - 3) ** 2
    loss.backward()
    for p in [w]:
        p = p - 0.1 * p.grad
    losses.append(loss.item())
print("losses:", losses)
assert losses == [4, 4, 4]

# %%
# **Write through** ``.data``. As an update after backward it gives the right number. But the write is not counted, so
# at the wrong moment the gradient is wrong and nothing is raised.

w = torch.tensor(2.0, requires_grad=True)
loss = w**2
w.data += 1
loss.backward()
print(f"w.grad = {w.grad.item()}, right is {2 * 2.0}")
assert w.grad == 6

# sphinx_gallery_start_ignore
_u, _v = (torch.tensor(1.0, requires_grad=True) for _ in range(2))
((_u - 3) ** 2).backward()
((_v - 3) ** 2).backward()
_u.data -= 0.1 * _u.grad
with torch.no_grad():
    _v -= 0.1 * _v.grad
assert _u == _v and abs(_v - 1.4) < 1e-6
# sphinx_gallery_end_ignore

# %%
# The same write under ``no_grad`` is counted, and :ref:`the error <sphx_glr_gallery_errors_modified_in_place.py>`
# tells you that it came too early.

w = torch.tensor(2.0, requires_grad=True)
loss = w**2
with torch.no_grad():
    w += 1
try:
    loss.backward()
except RuntimeError as error:
    print("RuntimeError: ...", str(error)[53:94], "...")
    assert "has been modified by an inplace operation" in str(error)

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: what makes a leaf
# - :ref:`sphx_glr_gallery_errors_view_of_leaf.py`: the same for a part of a parameter
# - `torch.no_grad <https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html>`__ in PyTorch's reference
