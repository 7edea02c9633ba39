r"""
The computation graph of one expression
=======================================

When you compute with tensors that require gradients, PyTorch writes down every operation as it runs. The record is
the *computation graph*, and ``backward()`` reads it from the result back to the inputs. This page follows one small
expression through the whole of it: every value, every local derivative, every gradient, first by hand and then by
autograd.

.. math::

   w = \log(x_1 x_2) \cdot \sin(x_2), \qquad x_1 = 2, \quad x_2 = 3
"""

# %%
# Forward: compute, and record
# ----------------------------
# Two tensors that require gradients, and four operations. One name for each intermediate result, so that it can be
# asked about later.

import math

import torch

x1 = torch.tensor(2.0, requires_grad=True)
x2 = torch.tensor(3.0, requires_grad=True)

a = x1 * x2
y1 = torch.log(a)
y2 = torch.sin(x2)
w = y1 * y2

# graph: w -- What the forward pass recorded: values, and the derivative of each step

print(f"w = {w.item():.8f}")

# sphinx_gallery_start_ignore
assert abs(w.item() - math.log(6) * math.sin(3)) < 1e-7
# sphinx_gallery_end_ignore

# %%
# Read the figure from left to right, as the computation ran. ``x1`` and ``x2`` are the *leaves*: nothing computed
# them. ``w`` is the *root*. Each edge carries a local derivative, the factor by which a small change of the value on
# its left changes the value on its right. ``x2`` is used twice, so two edges leave it.
#
# The record hangs on the results. ``grad_fn`` is the node that computed a tensor; leaves have none.

named = {"x1": x1, "x2": x2, "a": a, "y1": y1, "y2": y2, "w": w}

for name, tensor in named.items():
    node = tensor.grad_fn.name() if tensor.grad_fn else "None"
    print(f"{name:>2} = {tensor.item():.5f}   grad_fn: {node}")

# sphinx_gallery_start_ignore
assert x1.is_leaf and x2.is_leaf and x1.grad_fn is None and x2.grad_fn is None
names = [t.grad_fn.name() for t in (a, y1, y2, w)]
assert names == ["MulBackward0", "LogBackward0", "SinBackward0", "MulBackward0"]
# sphinx_gallery_end_ignore

# %%
# Backward by hand
# ----------------
# Start at the root, where :math:`\partial w / \partial w = 1`, and walk to the left. Each step multiplies the
# gradient that arrives by one local derivative: the chain rule, one link at a time.

dw = 1.0
dy1 = dw * y2.item()  # w = y1 * y2
dy2 = dw * y1.item()
da = dy1 / a.item()  # y1 = log(a)
dx1 = da * x2.item()  # a = x1 * x2
dx2_via_a = da * x1.item()
dx2_via_y2 = dy2 * math.cos(x2.item())  # y2 = sin(x2)
dx2 = dx2_via_a + dx2_via_y2

print(f"dw/dy1 = {dy1:.5f}   dw/dy2 = {dy2:.5f}")
print(f"dw/da  = {da:.5f}   dw/dx1 = {dx1:.5f}")
print(f"dw/dx2 = {dx2_via_a:.5f} + {dx2_via_y2:.5f} = {dx2:.7f}")

# %%
# Two paths lead from ``w`` to ``x2``. Along a path the local derivatives *multiply*; where paths meet, the products
# *add*. That sum over paths is the chain rule. Reverse mode computes it for all leaves in one walk, without listing
# the paths:
#
# .. math::
#
#    \frac{\partial w}{\partial x_2}
#      = \underbrace{y_2 \cdot \frac{1}{a} \cdot x_1}_{\text{through } a}
#      + \underbrace{y_1 \cdot \cos x_2}_{\text{through } y_2}

# %%
# Backward by autograd
# --------------------
# ``backward()`` does the same walk. By default it stores gradients on leaves only; ``retain_grad()`` asks an
# intermediate tensor to keep its own, so that every step can be compared.

# sphinx_gallery_start_ignore
assert not any(t.retains_grad for t in (a, y1, y2, w))
# sphinx_gallery_end_ignore
for tensor in (a, y1, y2, w):
    tensor.retain_grad()

w.backward()

# graph: w -- The gradients that backward left behind: two paths meet in x2, and their products add

by_hand = {"w": dw, "y1": dy1, "y2": dy2, "a": da, "x1": dx1, "x2": dx2}
for name, expected in by_hand.items():
    gradient = named[name].grad.item()
    print(f"dw/d{name:<2}   autograd {gradient:+.7f}   by hand {expected:+.7f}")
    assert math.isclose(gradient, expected, rel_tol=1e-6)

# sphinx_gallery_start_ignore
assert abs(x2.grad.item() - -1.7267885) < 1e-6
assert abs(x1.grad.item() - 0.0705600) < 1e-6
# sphinx_gallery_end_ignore

# %%
# All six agree. In the figure, the card of ``x2`` shows the sum term by term, and each term is the product of the
# factors along one path.
#
# The gradient is also a prediction: move ``x2`` a little, and ``w`` moves by the gradient times that step.

step = 0.01
moved = math.log(2 * (3 + step)) * math.sin(3 + step)
print(f"predicted change {x2.grad.item() * step:+.6f}")
print(f"real change      {moved - w.item():+.6f}")

# sphinx_gallery_start_ignore
assert abs((moved - w.item()) - x2.grad.item() * step) < 1e-4
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Following one path only.** The derivative through ``y2`` alone looks plausible, and it is wrong: every path
# counts.

print(f"through y2 only: {dx2_via_y2:.5f}, the gradient: {x2.grad.item():.5f}")
assert not math.isclose(dx2_via_y2, x2.grad.item(), rel_tol=1e-2)

# %%
# **Calling backward twice.** The first call frees what the nodes had saved for it, so the second has nothing to work
# with. Compute the forward pass again instead: it records a new graph.

try:
    w.backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "backward through the graph a second time" in str(error)

# %%
# Exercise
# --------
# Replace the product at the root by a sum: :math:`v = \log(x_1 x_2) + \sin(x_2)`. Before you run anything, write down
# :math:`\partial v / \partial x_2`. Which edges of the figure change?
#
# .. solution::
#
# Only the two edges into the root change: for a sum, both local derivatives are 1. The gradient is
# :math:`\frac{1}{x_2} + \cos x_2`.

x1 = torch.tensor(2.0, requires_grad=True)
x2 = torch.tensor(3.0, requires_grad=True)
v = torch.log(x1 * x2) + torch.sin(x2)
v.backward()

gradient, expected = x2.grad.item(), 1 / 3 + math.cos(3)
print(f"v = {v.item():.5f}")
print(f"dv/dx2   autograd {gradient:+.5f}   by hand {expected:+.5f}")
assert math.isclose(gradient, expected, rel_tol=1e-6)

# %%
# See also
# --------
# - Next: :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, which tensors keep a gradient, and why.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, the same graph seen from the engine's side.
# - In PyTorch's reference: `Autograd mechanics <https://docs.pytorch.org/docs/stable/notes/autograd.html>`__.
