r"""
backward(gradient=v): vector-Jacobian products
==============================================

``loss.backward()`` needs no argument, because a loss is one number. Called on a tensor with several entries,
``backward`` asks for a tensor ``gradient``. What it then computes is a *vector-Jacobian product*, and this is the one
thing that backward ever computes: the case of the loss is a special case of it.

.. math::

   y = f(x), \qquad J_{ij} = \frac{\partial y_i}{\partial x_j}

.. math::

   \texttt{y.backward(v)} \text{ adds } v^\top J \text{ to } \texttt{x.grad}
"""

# %%
# A result with three entries
# ---------------------------
# Two numbers go in, three come out. Every derivative is easy to check by hand.

import textwrap

import matplotlib.pyplot as plt
import torch

x = torch.tensor([2.0, 3.0], requires_grad=True)


def f(x):
    x1, x2 = x
    return torch.stack([x1 * x2, x1**2, x2**2])


y = f(x)
print("y =", y.tolist())

try:
    y.backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "only for scalar outputs" in str(error)

# sphinx_gallery_start_ignore
assert y.tolist() == [6, 4, 9]
# sphinx_gallery_end_ignore

# %%
# The refusal has a reason. Each of the three entries has its own gradient of two numbers. Together they are the
# Jacobian matrix, three rows and two columns:
#
# .. math::
#
#    J = \begin{pmatrix} x_2 & x_1 \\ 2 x_1 & 0 \\ 0 & 2 x_2 \end{pmatrix}
#      = \begin{pmatrix} 3 & 2 \\ 4 & 0 \\ 0 & 6 \end{pmatrix}
#
# ``x.grad`` has the shape of ``x``, so it has room for two numbers and not for six. Autograd has to be told how to
# combine the three rows. The vector ``v`` says it: one weight for each entry of ``y``.

J = torch.tensor([[3.0, 2.0], [4.0, 0.0], [0.0, 6.0]])  # by hand
v = torch.tensor([1.0, 10.0, 100.0])

y.backward(gradient=v)

print("x.grad =", x.grad.tolist())
print("v @ J  =", (v @ J).tolist())
assert torch.equal(x.grad, v @ J)

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [43, 602]
# sphinx_gallery_end_ignore

# %%
# The weights 1, 10 and 100 keep the rows apart: 43 is 3 from the first row and 40 from the second, and 602 is 2 from
# the first and 600 from the third. The figure has the same numbers.

fig, ax = plt.subplots(figsize=(7, 2.9), layout="constrained")
ax.set_title("One weight for each row of J, and the weighted rows add up to x.grad")
for left, top, text, matrix in [
    (0, 1, "v", v[None]),
    (4, 0, "J", J),
    (7, 1, "x.grad", x.grad[None]),
]:
    for row, values in enumerate(matrix.tolist(), top):
        for column, value in enumerate(values, left):
            fill = "white" if value else "#e2e8f0"  # zeros are grey
            ax.add_patch(plt.Rectangle((column, row), 1, 1, fc=fill, ec="#64748b"))
            ax.text(column + 0.5, row + 0.5, f"{value:g}", ha="center", va="center")
    ax.text(left + matrix.shape[1] / 2, 3.4, text, ha="center", family="monospace")
ax.text(3.5, 1.5, "@", ha="center", va="center")
ax.text(6.5, 1.5, "=", ha="center", va="center")
ax.set(xlim=(-0.1, 9.1), ylim=(3.6, -0.1), aspect="equal")
ax.set_axis_off()

# figure: The row vector v with the entries 1, 10, 100, times the three by two matrix J with the rows 3 2, 4 0 and
#   0 6, gives the row vector 43, 602, which is x.grad.

# %%
# The same number can be read in a second way. ``v`` turns ``y`` into one scalar, the weighted sum
# :math:`v_1 y_1 + v_2 y_2 + v_3 y_3`, and ``backward(v)`` gives the gradient of that scalar.

x.grad = None
weighted = (v * f(x)).sum()
weighted.backward()

print("gradient of the weighted sum:", x.grad.tolist())
assert torch.equal(x.grad, v @ J)

# %%
# What v is: the gradient from upstream
# -------------------------------------
# In practice the weights are not chosen freely. ``y`` is an intermediate result, something is computed from it, and
# at the end stands a scalar :math:`L`. Then :math:`v = \partial L / \partial y` is the gradient that arrives at
# ``y``, and the chain rule is a vector-Jacobian product:
#
# .. math::
#
#    \frac{\partial L}{\partial x} = \frac{\partial L}{\partial y}\, J = v^\top J
#
# To see it, cut one computation in two. Here the product of the three entries is :math:`L = x_1^3 x_2^3`.

x.grad = None
y = f(x)
y.retain_grad()
L = y.prod()
L.backward()

# graph: L -- The whole computation: what arrives at y is the v of everything on its left

whole = x.grad.clone()
print("L =", L.item(), "  dL/dy =", y.grad.tolist(), "  dL/dx =", whole.tolist())

# sphinx_gallery_start_ignore
assert L.item() == 6 * 4 * 9 == 2**3 * 3**3 and y.grad.tolist() == [36, 54, 24]
assert whole.tolist() == [3 * 2**2 * 3**3, 3 * 2**3 * 3**2] == [324, 216]
# sphinx_gallery_end_ignore

# %%
# Now the two halves. The second one starts from ``y.detach()``, a leaf with the same values that knows nothing of
# ``x``. Its gradient is handed to the first half as ``v``.

x.grad = None
y = f(x)
y_start = y.detach().requires_grad_()
y_start.prod().backward()  # second half: gives dL/dy
y.backward(gradient=y_start.grad)  # first half: turns dL/dy into dL/dx

print("v =", y_start.grad.tolist(), "  x.grad =", x.grad.tolist())
assert torch.equal(x.grad, whole)

# %%
# The result is that of the whole. So ``v`` is not "the gradient of ``y``" in the sense of a derivative *of* ``y``. It
# is the derivative of something later *with respect to* ``y``, and it has the shape of ``y``.
#
# Every node of a graph does this step: it receives ``v`` for its output and returns the product of ``v`` with its own
# Jacobian. It never builds the matrix. For an elementwise function of 100,000 numbers that would hardly be possible:

big = torch.ones(100_000, requires_grad=True)
big.exp().backward(gradient=torch.ones(100_000))

print(f"entries of J: {big.numel() ** 2:,}   entries of big.grad: {big.grad.numel():,}")

# sphinx_gallery_start_ignore
assert big.numel() ** 2 == 10**10 and torch.allclose(big.grad, torch.tensor(1.0).exp())
# sphinx_gallery_end_ignore

# %%
# A scalar is its own :math:`L`, and :math:`\partial L / \partial L = 1`. That is the value ``backward()`` fills in.

seeds = {}
for seed in (None, torch.tensor(1.0), torch.tensor(0.5)):
    x.grad = None
    f(x).prod().backward(gradient=seed)
    seeds[str(seed)] = x.grad.tolist()
    print(f"gradient={seed!s:<14}  x.grad = {x.grad.tolist()}")

# sphinx_gallery_start_ignore
assert list(seeds.values()) == [[324, 216], [324, 216], [162, 108]]
# sphinx_gallery_end_ignore

# %%
# The full Jacobian, one row for each backward
# --------------------------------------------
# A ``v`` with a single 1 picks a single row of :math:`J`. Three rows take three passes. ``torch.autograd.grad``
# returns the result and leaves ``x.grad`` alone; ``retain_graph=True`` keeps the graph for the next row.

y = f(x)
visits = []
y.grad_fn.register_prehook(lambda gradients: visits.append(len(visits) + 1))

rows = [
    torch.autograd.grad(y, x, grad_outputs=unit, retain_graph=True)[0]
    for unit in torch.eye(3)
]
looped = torch.stack(rows)

print("row by row:\n", looped, "\nvisits of the last node:", len(visits))
assert torch.equal(looped, J) and len(visits) == 3

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [162, 108]  # as the cell before left it
# sphinx_gallery_end_ignore

# %%
# With ``is_grads_batched=True`` the first dimension of ``grad_outputs`` counts vectors, and one pass carries all of
# them.

visits.clear()
(batched,) = torch.autograd.grad(y, x, grad_outputs=torch.eye(3), is_grads_batched=True)

print("batched:\n", batched, "\nvisits of the last node:", len(visits))
assert torch.equal(batched, J) and len(visits) == 1

# %%
# Backward gives rows, so its cost goes with the number of *outputs*. One row holds the derivatives with respect to
# all inputs, however many there are. Training has this shape, one loss and many parameters, and one pass is enough.

# %%
# inputs=: say where gradients go
# -------------------------------
# By default ``backward`` fills the ``.grad`` of every leaf it reaches. ``inputs=`` names the tensors that are to get
# one, and the other leaves stay as they are. A non-leaf may be named too. The hook below notes whether the step back
# from ``features`` to ``x`` was computed.

W = torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]], requires_grad=True)
v = torch.tensor([1.0, 0.0, 2.0])
runs = []

print("inputs  W.grad  x.grad  step to x")
for names in ("W x", "W", "h"):
    x.grad = W.grad = None
    features = x * 2
    h = W @ features
    visits = []
    features.grad_fn.register_prehook(lambda _, visits=visits: visits.append(1))
    chosen = [{"W": W, "x": x, "h": h}[name] for name in names.split()]
    (h**2).backward(gradient=v, inputs=chosen)
    runs.append((W.grad is not None, x.grad is not None, len(visits) == 1))
    print(f"{names:<8}" + "".join(f"{flag!s:<8}" for flag in runs[-1]))

print("h.grad =", h.grad.tolist())
assert torch.equal(h.grad, 2 * h * v)

# sphinx_gallery_start_ignore
assert runs == [(True, True, True), (True, False, False), (False, False, False)]
# sphinx_gallery_end_ignore

# %%
# What nobody asked for is not computed either: without ``x`` among the inputs, the step to ``x`` did not run.

# %%
# What people get wrong
# ---------------------
# **Taking ones for "no weights".** The error disappears with ``gradient=torch.ones_like(y)``, and so does the
# question. Ones mean the gradient of the *sum* of all entries. For an elementwise operation that happens to be the
# elementwise derivative, since no entry of ``x`` touches more than one entry of ``y``. For softmax it is worth
# nothing: the entries always add up to 1, so their sum has the gradient zero.

logits = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
ones, last = torch.ones(3), torch.tensor([0.0, 0.0, 1.0])
found = []

for text, operation, v in [
    ("exp, ones", torch.exp, ones),
    ("softmax, ones", lambda t: t.softmax(dim=0), ones),
    ("softmax, last entry", lambda t: t.softmax(dim=0), last),
]:
    (gradient,) = torch.autograd.grad(operation(logits), logits, grad_outputs=v)
    found.append(gradient)
    print(f"{text:<20} largest entry of the gradient: {gradient.abs().max():.4f}")

# sphinx_gallery_start_ignore
probabilities = logits.detach().softmax(dim=0)
assert torch.allclose(found[0], logits.detach().exp())
assert found[1].abs().max() < 1e-6
logits.softmax(dim=0)[2].backward()
assert torch.allclose(logits.grad, found[2], atol=1e-6)
assert torch.allclose(found[2], probabilities[2] * (last - probabilities), atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The fix is to decide which scalar you want the gradient of. For one entry, ``y[2].backward()`` or a unit vector. For
# a loss with one value for each sample, ``.mean()`` or ``.sum()`` first. If you want every derivative, you want the
# Jacobian: `tutorials#2569 <https://github.com/pytorch/tutorials/issues/2569>`__ asks why a gradient with respect to
# two numbers is not a 2 × 2 matrix, and the answer is that backward returns a vector times that matrix.

# %%
# **A v of the wrong shape.** ``v`` has one weight for each entry of ``y``. It is not broadcast, and it does not have
# the shape of ``x``. The second mistake below is a whole batch of vectors without ``is_grads_batched=True``.

y = f(x)
for wrong in (torch.ones(2), torch.eye(3)):
    try:
        torch.autograd.grad(y, x, grad_outputs=wrong)
    except RuntimeError as error:
        print(textwrap.fill(f"RuntimeError: {error}", 88))
        assert "Mismatch in shape: grad_output[0]" in str(error)

# %%
# Exercise
# --------
# Four samples, one weight: ``losses = (w * samples - targets) ** 2`` with ``samples`` 1, 2, 3, 4, targets 2, 3, 5, 9
# and ``w = 1``. Which ``v`` makes ``losses.backward(v)`` give the gradient of the mean loss? Which one gives the
# gradient of the last sample alone? How do you get the four gradients of the single samples in one call?
#
# .. solution::
#
# The mean weighs each sample with one quarter. The last sample alone is the unit vector with its 1 at the end. The
# four gradients are the Jacobian, a single column: pass all unit vectors at once. Its mean is the gradient of the
# mean.

w = torch.tensor(1.0, requires_grad=True)
samples = torch.tensor([1.0, 2.0, 3.0, 4.0])
losses = (w * samples - torch.tensor([2.0, 3.0, 5.0, 9.0])) ** 2
units = torch.eye(4)


def product(v, **options):
    return torch.autograd.grad(losses, w, v, retain_graph=True, **options)[0]


mean, alone = product(torch.full((4,), 0.25)), product(units[3])
each = product(units, is_grads_batched=True)

print(f"mean {mean.item()}   last sample {alone.item()}   each {each.tolist()}")
assert each[3] == alone and each.mean() == mean

# sphinx_gallery_start_ignore
assert each.tolist() == [-2, -4, -12, -40] and mean == -14.5
assert product(torch.full((4,), 0.25)) == torch.autograd.grad(losses.mean(), w)[0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_draw_a_graph.py`, the last page about the graph itself.
# - Next: :ref:`sphx_glr_gallery_differentiation_accumulation.py`, why backward *adds* to ``.grad``.
# - :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`, the whole Jacobian of larger functions, and what
#   it costs.
# - In PyTorch's reference: `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__ and `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
