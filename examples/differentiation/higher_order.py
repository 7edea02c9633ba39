r"""
Second derivatives and create_graph
===================================

A gradient is a tensor that was computed, so it can be differentiated again, if its computation was recorded. That is
what ``create_graph=True`` asks for. You need it for second derivatives, for penalties on a gradient, for
differential equations and for learning through an update step. This page shows how it works, and what it costs in
memory.
"""

# %%
# The derivative of a derivative
# ------------------------------
# The function :math:`x^3` at 5 has the derivatives :math:`3x^2 = 75`, :math:`6x = 30` and 6. Each turn of the loop
# differentiates what the last one returned.

import math
import textwrap
import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn

x = torch.tensor(5.0, requires_grad=True)
derivative = x**3
values = [derivative.item()]

for order in (1, 2, 3):
    (derivative,) = torch.autograd.grad(derivative, x, create_graph=True)
    values.append(derivative.item())
    node = derivative.grad_fn.name()
    print(f"order {order}: {derivative.item():>4}   grad_fn: {node}")

assert values == [125, 75, 30, 6]

# %%
# Every derivative has a ``grad_fn``: it is the result of recorded operations, like any other. Without
# ``create_graph`` the numbers are the same, but backward runs unrecorded, and its result is a constant.

(plain,) = torch.autograd.grad(x**3, x)
print(f"plain = {plain.item()}   requires_grad: {plain.requires_grad}")

try:
    torch.autograd.grad(plain, x)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "does not require grad and does not have a grad_fn" in str(error)

# sphinx_gallery_start_ignore
assert plain == 75 and not plain.requires_grad
# sphinx_gallery_end_ignore

# %%
# A penalty on a gradient
# -----------------------
# Some losses contain a gradient: they ask that a function should not be too steep, or that it should solve a
# differential equation. To train with such a loss, its gradient with respect to the *weights* is needed, and that is
# a second derivative. The smallest case:
#
# .. math::
#
#    y = w x^2, \qquad g = \frac{\partial y}{\partial x} = 2 w x
#
# .. math::
#
#    \text{penalty} = (g - 1)^2, \quad \frac{\partial\, \text{penalty}}{\partial w} = 2 (g - 1) \cdot 2 x

w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor(3.0, requires_grad=True)

y = w * x**2
(g,) = torch.autograd.grad(y, x, create_graph=True)
penalty = (g - 1) ** 2

# graph: penalty -- The gradient g was computed from w and x, so the penalty has paths to both

print(f"y = {y.item()}   g = {g.item()}   penalty = {penalty.item()}")

# sphinx_gallery_start_ignore
assert y == 4.5 and g == 3 and penalty == 4
# sphinx_gallery_end_ignore

# %%
# ``y`` itself is not in the figure. What is recorded is the computation of ``g``, the backward pass of ``y``, and the
# weight takes part in it. The second pass goes through that record.

penalty.backward()
by_hand = 2 * (g.item() - 1) * 2 * x.item()

print(f"w.grad = {w.grad.item()}, by hand {by_hand}")
assert w.grad.item() == by_hand == 24

# %%
# Every entry at once
# -------------------
# ``torch.autograd.grad`` starts at a scalar. If each entry of ``f(x)`` depends on one entry of ``x`` only, the sum of
# the entries does the work: its gradient is :math:`f'` at every point. The second derivative of tanh is
# :math:`-2 \tanh(x) \, (1 - \tanh^2(x))`.

x = torch.tensor([-1.0, 0.5, 2.0], requires_grad=True)
t = torch.tanh(x)
(first,) = torch.autograd.grad(t.sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)

print("second derivative:", [round(value, 4) for value in second.tolist()])
assert torch.allclose(second, -2 * t * (1 - t**2))

# %%
# What create_graph costs in memory
# ---------------------------------
# The backward pass is now recorded, and its operations save tensors for the next one. ``saved_tensors_hooks`` calls a
# function for each tensor that an operation saves, so the bytes can be counted. Two operations may save the same
# tensor: each storage counts once. The weights of a model exist anyway, and can be left out.


class Meter(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, parameters=()):
        self.known = {p.untyped_storage().data_ptr() for p in parameters}
        self.held = {}
        super().__init__(self.note, lambda tensor: tensor)

    def note(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.known:
            self.held[storage.data_ptr()] = storage
        return tensor.detach()

    @property
    def bytes(self):
        return sum(storage.nbytes() for storage in self.held.values())


# %%
# The derivatives of tanh at 1000 points, up to the sixth. All graphs are kept, so the bytes are those of all orders
# so far.

x = torch.linspace(-3, 3, 1000, requires_grad=True)
curves, saved = [], []
meter = Meter()

with meter:
    f = torch.tanh(x)
    for order in range(7):
        if order > 0:
            (f,) = torch.autograd.grad(f.sum(), x, create_graph=True)
        curves.append(f.detach())
        saved.append(meter.bytes)
        print(f"order {order}: {saved[-1]:>7,} bytes saved")

# sphinx_gallery_start_ignore
assert saved[0] == 4 * 1000
assert all(1.9 < saved[k + 1] / saved[k] < 2.3 for k in range(1, 6))
assert saved[1] < 1.1 * saved[0] and 35 < saved[6] / saved[0] < 50
# sphinx_gallery_end_ignore

# %%
# tanh saves its result, 1000 numbers of four bytes. The first derivative is :math:`1 - \tanh^2(x)`, which needs
# nothing else. From there on, the bytes about double with each order: the derivative of a product is a sum of two
# products, so each pass records more operations than the one before.

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
fig.suptitle("Higher derivatives of tanh, and what their graphs keep")
styles = [("-", "#1e293b"), ("--", "#2563eb"), ("-.", "#c2410c"), (":", "#047857")]
for order, (style, colour) in enumerate(styles):
    left.plot(x.detach(), curves[order], style, color=colour, label=f"order {order}")
left.set(xlabel="x", ylabel="value")
left.legend(fontsize=8)
right.bar(range(7), [count / 1000 for count in saved], color="#2563eb")
right.set(xlabel="order of the derivative", ylabel="kilobytes saved, in total")

# figure: On the left, tanh and its first three derivatives between -3 and 3, each wavier than the one before. On the
#   right, the kilobytes saved for each order, from 4 for tanh itself to about 170 for the sixth derivative. From the
#   first order on, the bars about double from one to the next.

# sphinx_gallery_start_ignore
slopes = [curve.diff() for curve in curves[:4]]
turns = [slope[slope.abs() > 1e-6].sign().diff().count_nonzero() for slope in slopes]
assert turns == [0, 1, 2, 3]
# sphinx_gallery_end_ignore

# %%
# For a model, the question is what a gradient penalty adds to a training step. Here the input is a batch of 256, and
# the inner layers are 64 wide.


def penalty_bytes(layers, create_graph):
    torch.manual_seed(0)
    parts = [part for _ in range(layers) for part in (nn.Linear(64, 64), nn.Tanh())]
    model = nn.Sequential(*parts, nn.Linear(64, 1))
    batch = torch.randn(256, 64, requires_grad=True)
    meter = Meter(model.parameters())
    with meter:
        y = model(batch).sum()
        forward = meter.bytes
        (g,) = torch.autograd.grad(y, batch, create_graph=create_graph)
        ((g.norm(dim=1) - 1) ** 2).mean()
    return forward, meter.bytes


print("layers   forward   gradient, plain   gradient and penalty   ratio")
ratios = []
for layers in (1, 2, 4, 8):
    forward, plain_total = penalty_bytes(layers, create_graph=False)
    _, total = penalty_bytes(layers, create_graph=True)
    ratios.append(total / forward)
    row = f"{layers:>6} {forward:>9,} {plain_total:>17,} {total:>22,}"
    print(f"{row} {ratios[-1]:>7.2f}")
    assert plain_total == forward

# sphinx_gallery_start_ignore
assert all(2.5 < ratio < 3 for ratio in ratios), ratios
# sphinx_gallery_end_ignore

# %%
# The plain gradient adds nothing to what the forward pass saved, and releases it at the end. With ``create_graph``
# nothing is released, and the recorded backward pass adds more than the forward pass took: here the whole is two and
# a half to three times as much. If only a few steps need the penalty, compute it in those.

# %%
# What people get wrong
# ---------------------
# **retain_graph in place of create_graph.** A loss that contains both ``y`` and its gradient needs the graph of
# ``y`` after the gradient was taken. Without an option, ``loss.backward()`` complains about a second pass, and
# ``retain_graph=True`` makes that error go away. But then ``g`` is a constant: the loss has the right value, and the
# penalty has no effect on the weights.


def weight_gradient(**option):
    w = torch.tensor(0.5, requires_grad=True)
    x = torch.tensor(3.0, requires_grad=True)
    y = w * x**2
    (g,) = torch.autograd.grad(y, x, **option)
    loss = (y - 2) ** 2 + (g - 1) ** 2
    loss.backward()
    return loss.item(), w.grad.item()


results = {}
for option in ("retain_graph", "create_graph"):
    results[option] = weight_gradient(**{option: True})
    print(f"{option}: loss {results[option][0]}   w.grad {results[option][1]}")

# sphinx_gallery_start_ignore
assert results == {"retain_graph": (10.25, 45.0), "create_graph": (10.25, 69.0)}
assert by_hand == 69 - 45
try:
    weight_gradient()
except RuntimeError as error:
    results["none"] = str(error)
assert "backward through the graph a second time" in results["none"]
# sphinx_gallery_end_ignore

# %%
# The difference is the 24 that was computed above. ``create_graph=True`` implies ``retain_graph=True``, so it alone
# is the fix. An assert that catches it: ``assert g.requires_grad``.

# %%
# **backward(create_graph=True).** It fills ``.grad`` of *every* leaf on the way, so the derivative of ``y`` stays in
# ``w.grad`` when the penalty is added. And ``.grad`` now holds a graph that holds the leaf: PyTorch warns.

w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor(3.0, requires_grad=True)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    (w * x**2).backward(create_graph=True)

message = str(caught[0].message).partition(". ")[0]  # the first sentence
print(textwrap.fill(f"{caught[0].category.__name__}: {message}.", 88))
before = w.grad.item()
((x.grad - 1) ** 2).backward()
print(f"w.grad before the penalty: {before}, after it: {w.grad.item()}")
print(f"the gradient of the penalty: {by_hand}")

# sphinx_gallery_start_ignore
assert "will create a reference cycle" in message
assert (before, w.grad.item()) == (9, 33)
x.grad = w.grad = None
# sphinx_gallery_end_ignore

# %%
# ``torch.autograd.grad`` returns the gradient and leaves the ``.grad`` of the leaves alone. Use it for every inner
# derivative.
#
# **A network that has no second derivative.** Between its kinks, a ReLU network is linear in its input. Its second
# derivative is zero everywhere else, and a term of the loss that is made of it trains nothing. There is no error.
# Take a smooth activation.

points = torch.linspace(-2, 2, 50)[:, None].requires_grad_()
largest = {}

for activation in (nn.ReLU(), nn.Tanh()):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 16), activation, nn.Linear(16, 1))
    (g,) = torch.autograd.grad(net(points).sum(), points, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), points)
    name = type(activation).__name__
    largest[name] = second.abs().max().item()
    print(f"{name:<5} largest second derivative: {largest[name]:.4f}")

assert largest["ReLU"] == 0 and largest["Tanh"] > 0.1

# %%
# Exercise
# --------
# Newton's method looks for a minimum with two derivatives: :math:`x \leftarrow x - f'(x) / f''(x)`. Write it for
# :math:`f(x) = e^x - 2x`, start at 0, and stop after five steps. Where is the minimum, and which of the two calls of
# ``torch.autograd.grad`` needs ``create_graph=True``?
#
# .. solution::
#
# Only the first call: its result is differentiated once more. The minimum is at :math:`\log(2)`, where
# :math:`e^x = 2` holds. Each turn starts from a new leaf, so no graph reaches back into earlier turns.

start = 0.0
for step in range(1, 6):
    x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.exp(x) - 2 * x, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    start = (x - first / second).item()
    print(f"step {step}: x = {start:.8f}")

print(f"log 2:      {math.log(2):.8f}")
assert math.isclose(start, math.log(2), rel_tol=1e-7)

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_build_the_engine.py`, which keeps a graph of the gradients unless
#   it is told not to.
# - Next: :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`, all second derivatives of a function at
#   once.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, what backward frees.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ and `hooks for saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors>`__.
