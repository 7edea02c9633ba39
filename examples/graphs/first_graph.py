r"""
What is a computation graph in PyTorch?
=======================================

.. in-short::

   While you compute with tensors that require grad, PyTorch records a graph: usually one node for each operation.
   ``loss.backward()`` walks this graph back from the loss to your weights. On the way it applies the chain rule and leaves in
   each ``weight.grad`` how fast the loss changes with that weight. No gradient passes through ``x > 0``, ``x.argmax()`` or
   ``x.detach()``, because PyTorch does not record them.
"""

# %%
# The question: how does the loss react?
# --------------------------------------
# To train a model, you need one number for each weight: how fast the loss grows as that weight grows. This is the weight's
# *gradient*. To see each step, we begin with something smaller than a model: two numbers ``x1`` and ``x2``, and one result,
# ``w = log(x1 * x2) * sin(x2)``. With ``requires_grad=True`` you ask PyTorch to record what is computed from them:

import math

import torch

x1 = torch.tensor(2.0, requires_grad=True)
x2 = torch.tensor(3.0, requires_grad=True)

a = x1 * x2
y1 = torch.log(a)
y2 = torch.sin(x2)
w = y1 * y2

# graph: w -- The graph that these four lines recorded, and the local derivative of each step

# sphinx_gallery_start_ignore
assert abs(w.item() - 1.7917594692 * 0.1411200081) < 1e-7  # log(6) * sin(3)
assert not any(t.retains_grad for t in (a, y1, y2, w))  # by default
# sphinx_gallery_end_ignore

# %%
# Each card is a tensor. The card of a result names the *node* that PyTorch recorded for its operation, such as
# ``LogBackward0`` for ``torch.log``. ``x1`` and ``x2`` are *leaves*: no operation was recorded for them. The *root* ``w`` is
# where ``backward()`` will start. ``x2`` is used twice, so two arrows (*edges*) leave it.
#
# The number on an edge is a *local derivative*: if the value at its start changes a little, the value at its end changes by
# about that number times as much. PyTorch stores no such number, only what a node needs to compute with it later. The figure
# :doc:`asked the nodes </guide/how-to-read-a-graph>`.

# %%
# ``backward()`` fills in the gradients
# -------------------------------------
# One call computes the gradients of both leaves. With ``retain_grad()`` the other four tensors keep theirs too:

for tensor in (a, y1, y2, w):
    tensor.retain_grad()

w.backward()

# graph: w -- The gradients that backward left: two paths lead back to x2, and their products add up

print(f"w      = {w.item():.8f}")
print(f"dw/dx1 = {x1.grad.item():.7f}")
print(f"dw/dx2 = {x2.grad.item():.7f}")

# sphinx_gallery_start_ignore
assert abs(x2.grad.item() - -1.7267885) < 1e-6
assert abs(x1.grad.item() - 0.0705600) < 1e-6
assert w.grad == 1  # where the walk starts
# sphinx_gallery_end_ignore

# %%
# The same with a real loss
# -------------------------
# In training, the leaves are weights, and the root is a loss:

inputs = torch.tensor([1.0, 2.0, 3.0])
targets = torch.tensor([3.0, 5.0, 7.0])
weight = torch.tensor(1.5, requires_grad=True)
bias = torch.tensor(0.0, requires_grad=True)

loss = ((weight * inputs + bias - targets) ** 2).mean()
loss.backward()
print(
    f"loss {loss.item():.2f}, weight.grad {weight.grad:.2f}, bias.grad {bias.grad:.2f}"
)

# sphinx_gallery_start_ignore
errors = 1.5 * inputs - targets
assert torch.isclose(weight.grad, (2 * errors * inputs).mean()) and weight.grad < 0
assert torch.isclose(bias.grad, (2 * errors).mean()) and bias.grad < 0
# sphinx_gallery_end_ignore

# %%
# Both gradients are negative, so the loss gets smaller if ``weight`` and ``bias`` grow a little.

# %%
# What the number tells you
# -------------------------
# The gradient of ``x2`` above is about -1.73. So if ``x2`` grows by a small step, ``w`` shrinks by about 1.73 times that:


def w_at(x2):
    return math.log(2 * x2) * math.sin(x2)


for step in (0.1, 0.01, 0.001):
    real = w_at(3 + step) - w_at(3)
    predicted = x2.grad.item() * step
    print(f"step {step:<6} predicted {predicted:+.7f}   real {real:+.7f}")

# sphinx_gallery_start_ignore
gaps = [
    abs(w_at(3 + step) - w_at(3) - x2.grad.item() * step) for step in (0.1, 0.01, 0.001)
]
# a gap that falls with the square of the step: the slope itself is right
assert 80 < gaps[0] / gaps[1] < 120 and 80 < gaps[1] / gaps[2] < 120
# sphinx_gallery_end_ignore

# %%
# Why it works: the chain rule, one node at a time
# ------------------------------------------------
# **Start at the root with 1, and go against the arrows. Along an edge, multiply by its number. Where several edges lead back to
# one tensor, add.** By hand, where ``da`` is short for the derivative of ``w`` by ``a``:

dw = 1.0  # w changes as fast as itself
dy1 = dw * y2.item()  # w = y1 * y2
dy2 = dw * y1.item()
da = dy1 / a.item()  # y1 = log(a)
dx1 = da * x2.item()  # a = x1 * x2
dx2 = da * x1.item() + dy2 * math.cos(x2.item())  # two paths meet: add

tensors = {"y1": y1, "y2": y2, "a": a, "x1": x1, "x2": x2}
by_hand = {"y1": dy1, "y2": dy2, "a": da, "x1": dx1, "x2": dx2}
for name, gradient in by_hand.items():
    autograd = tensors[name].grad.item()
    print(f"dw/d{name:<2}  by hand {gradient:+.6f}   autograd {autograd:+.6f}")
    assert math.isclose(gradient, autograd, rel_tol=1e-6)

# sphinx_gallery_start_ignore
_edges = [("w", "y1", y2), ("w", "y2", y1), ("y1", "a", 1 / a)]  # from the root on
_edges += [("y2", "x2", torch.cos(x2)), ("a", "x1", x2), ("a", "x2", x1)]
_arrived = {"w": [1.0]}
for _tip, _start, _number in _edges:
    _product = sum(_arrived[_tip]) * _number.item()
    _arrived.setdefault(_start, []).append(_product)
assert {_name for _name, _products in _arrived.items() if len(_products) == 2} == {"x2"}
for _name, _tensor in tensors.items():
    assert math.isclose(sum(_arrived[_name]), _tensor.grad.item(), rel_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The gradient of ``x2`` has one term for each path:
#
# .. math::
#
#    \frac{\partial w}{\partial x_2}
#      = \underbrace{y_2 \cdot \frac{1}{a} \cdot x_1}_{\text{through } a}
#      + \underbrace{y_1 \cdot \cos x_2}_{\text{through } y_2}
#
# This is *reverse-mode automatic differentiation*, or *backpropagation*. The graph is *directed* and *acyclic*: its edges have
# a direction and form no cycle.

# %%
# What is recorded
# ----------------
# Each recorded result has a ``grad_fn``: its node. The last three results below have none. A boolean or an integer cannot
# change a little, and ``detach()`` asks for the same numbers without a record:

results = {
    "torch.log(a)": y1,
    "a > 1": a > 1,
    "a.int()": a.int(),
    "a.detach()": a.detach(),
}
for text, result in results.items():
    print(f"{text:<13} grad_fn: {result.grad_fn.name() if result.grad_fn else None}")

# sphinx_gallery_start_ignore
names = [t.grad_fn.name() for t in (a, y1, y2, w)]
assert names == ["MulBackward0", "LogBackward0", "SinBackward0", "MulBackward0"]
assert x1.is_leaf and x2.is_leaf and x1.grad_fn is None and x2.grad_fn is None
assert [text for text, t in results.items() if t.grad_fn] == ["torch.log(a)"]
vector = torch.ones(3, requires_grad=True)
for result in (vector.argmax(), vector > 0, vector.detach()):
    assert result.grad_fn is None and not result.requires_grad
with torch.no_grad():
    assert torch.log(a).grad_fn is None
# sphinx_gallery_end_ignore

# %%
# In a validation loop, ``with torch.no_grad():`` switches recording off.

# %%
# What people get wrong
# ---------------------
# **Calling** ``backward()`` **twice on one graph.** The first call drops the values that the nodes saved, so the second
# raises an error:

try:
    w.backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "backward through the graph a second time" in message
# sphinx_gallery_end_ignore

# %%
# Run the forward pass again: it records a new graph (:ref:`more fixes <sphx_glr_gallery_errors_backward_twice.py>`).
#
# **Forgetting to clear** ``.grad``. Each ``backward()`` adds to it, so after a second one both gradients are twice as large:

loss = ((weight * inputs + bias - targets) ** 2).mean()
loss.backward()
print(f"weight.grad {weight.grad:.2f}, bias.grad {bias.grad:.2f}")

# sphinx_gallery_start_ignore
assert torch.isclose(weight.grad, 2 * (2 * errors * inputs).mean())
assert torch.isclose(bias.grad, 2 * (2 * errors).mean())
try:
    (weight * inputs).backward()
except RuntimeError as error:
    assert "only for scalar outputs" in str(error)
else:
    raise AssertionError
# sphinx_gallery_end_ignore

# %%
# Call ``optimizer.zero_grad()`` before ``backward()`` in each training step.
#
# **Calling** ``backward()`` **on several numbers.** ``(weight * inputs).backward()`` raises :ref:`an error
# <sphx_glr_gallery_errors_not_a_scalar.py>`. Take the mean or the sum first, as ``loss`` does.

# %%
# Exercise
# --------
# Replace the product at the root by a sum: :math:`v = \log(x_1 x_2) + \sin(x_2)`. Before you run anything, write down
# :math:`\partial v / \partial x_2`. Which local derivatives in the first figure change?
#
# .. solution::
#
# Only those on the two edges into the root: for a sum, both are 1. The gradient is
# :math:`\frac{1}{x_2} + \cos x_2`.

x1 = torch.tensor(2.0, requires_grad=True)
x2 = torch.tensor(3.0, requires_grad=True)
v = torch.log(x1 * x2) + torch.sin(x2)
v.backward()

# sphinx_gallery_start_ignore
assert v.grad_fn(torch.tensor(1.0)) == (1, 1)
# sphinx_gallery_end_ignore
by_hand = 1 / 3 + math.cos(3)
print(f"dv/dx2   autograd {x2.grad.item():+.5f}   by hand {by_hand:+.5f}")
assert math.isclose(x2.grad.item(), by_hand, rel_tol=1e-6)

# predict: x2.grad -- What is ∂v/∂x2?

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`: walk the graph yourself.
# - In PyTorch's notes: `Autograd mechanics <https://docs.pytorch.org/docs/stable/notes/autograd.html>`__.
