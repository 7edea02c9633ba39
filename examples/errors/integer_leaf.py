r"""
Only Tensors of floating point and complex dtype can require gradients
======================================================================

.. index::
   ! single: only Tensors of floating point dtype can require gradients
   ! single: requires_grad=True on integers
   ! single: loading an int8 or int4 model fails in nn.Parameter

A tensor of integers or booleans is to require a gradient. Usually a decimal point is missing, as in ``[1, 2]``. Else
it holds indices or labels, which need no gradient, or quantised weights, which cannot have one.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

try:
    torch.tensor([1, 2], requires_grad=True)
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("Only Tensors of floating point and complex dtype")

try:
    torch.tensor([1, 2]).requires_grad_()
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("only Tensors of floating point")

# %%
# The two calls word it differently, and earlier versions said *Only Tensors of floating point dtype* in the first one
# too.

# %%
# Why
# ---
# A derivative asks what a small change does. Integers have no small changes. Where a computation turns numbers into
# integers, the result stands still and then jumps, so there is no slope that could be of use.

import matplotlib.pyplot as plt

x = (torch.arange(33) / 8).requires_grad_()
steps = x.long()
print("steps.requires_grad:", steps.requires_grad)
assert not steps.requires_grad

# figure: The line x rises evenly. Its integer part is a staircase: level on each step, with a
#   jump at each whole number, so its slope is 0 or does not exist.
numbers = x.detach()
_, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.plot(numbers, numbers, "--", color="#64748b", label="x: slope 1")
ax.step(numbers, steps, where="post", color="#c2410c", label="x.long(): slope 0")
ax.set_title("The integer part of x does not move when x moves a little")
ax.set_xlabel("x")
ax.legend()

# sphinx_gallery_start_ignore
assert set((steps[1:] - steps[:-1]).tolist()) == {0, 1}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Numbers that are to be learned**: write the decimal point, give the dtype, or convert before you ask for the
# gradient.

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)
c = torch.tensor([1, 2]).float().requires_grad_()
(a * b * c).sum().backward()
print(a.grad.tolist(), b.grad.tolist(), c.grad.tolist())
assert a.grad.tolist() == b.grad.tolist() == c.grad.tolist() == [1, 4]

# %%
# **Indices and labels** need no gradient. It belongs to what they select: here the rows 0 and 2 of a table.

table = torch.nn.Embedding(3, 2)
indices = torch.tensor([0, 2])
table(indices).sum().backward()
print(table.weight.grad.tolist())
assert table.weight.grad.tolist() == [[1, 1], [0, 0], [1, 1]]

# %%
# **Integer weights of a quantised layer.** ``nn.Parameter`` asks for a gradient unless told not to. A buffer never
# does. Both are saved with the model.

layer = torch.nn.Module()
weight = torch.tensor([3, -5], dtype=torch.int8)
layer.weight = torch.nn.Parameter(weight, requires_grad=False)
layer.register_buffer("offset", torch.tensor([1], dtype=torch.int8))
print(list(layer.state_dict()), layer.weight.requires_grad)
assert list(layer.state_dict()) == ["weight", "offset"]

# sphinx_gallery_start_ignore
assert not layer.weight.requires_grad and not layer.offset.requires_grad
try:
    torch.nn.Parameter(weight)
except RuntimeError as error:
    _message = str(error)
assert _message.startswith("Only Tensors of floating point and complex dtype")
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Convert a choice back to floats.** ``argmax().float().requires_grad_()`` raises nothing, and backward runs. But it
# runs into the new leaf and ends there. The weights get nothing.

w = torch.tensor([0.2, 0.7, 0.1], requires_grad=True)
guess = (2 * w).argmax().float().requires_grad_()
((guess - 2) ** 2).backward()
print("guess.grad =", guess.grad.item(), "  w.grad is", w.grad)
assert w.grad is None and guess.grad == -2

# %%
# **Round instead.** ``round()`` and ``floor()`` return floats, so nothing is refused. Their derivative in
# PyTorch is 0 everywhere, and that is what the weights get.

w = torch.tensor([1.2, 2.7], requires_grad=True)
((w.round() - 5) ** 2).sum().backward()
print("w.grad =", w.grad.tolist())
assert w.grad.tolist() == [0, 0]

# sphinx_gallery_start_ignore
_w = torch.tensor([1.2, 2.7], requires_grad=True)
((_w.floor() - 5) ** 2).sum().backward()
assert _w.grad.tolist() == [0, 0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: which tensors can be leaves
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`: the error if an integer stands between the weights and the loss
# - `torch.Tensor.requires_grad <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html>`__ in
#   PyTorch's reference
