r"""
backward(v): vector-Jacobian products
=====================================

.. in-short::

   ``loss.backward()`` needs a loss with one entry. If you have a loss for each sample, call ``losses.mean().backward()``. For
   other weights, pass a ``v`` of the shape of ``y``: ``y.backward(gradient=v)`` computes the gradient of ``(v * y).sum()``,
   with ``v`` as a constant. For vectors of real numbers this is ``v @ J``, the vector-Jacobian product. For all of ``J`` of
   ``y = f(x)``, use ``torch.func.jacrev(f)(x)``.
"""

# %%
# A loss for each sample
# ----------------------
# You compute a loss for each of four samples, and call ``backward()`` on all of them:

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
inputs, labels = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])

losses = nn.functional.cross_entropy(model(inputs), labels, reduction="none")
try:
    losses.backward()
except RuntimeError as error:
    print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert losses.shape == (4,) and model.weight.grad is None
# sphinx_gallery_end_ignore

# %%
# PyTorch asks how much each loss counts. So give each a weight. With a quarter for each, you get the gradient of the mean:

losses.backward(gradient=torch.full((4,), 0.25))
weighted = model.weight.grad.clone()

model.zero_grad()
nn.functional.cross_entropy(model(inputs), labels).backward()  # the mean
print("same gradient:", torch.allclose(weighted, model.weight.grad))

# sphinx_gallery_start_ignore
torch.testing.assert_close(weighted, model.weight.grad)
_ignored = torch.tensor([0, -100, 1, -100])
_losses = nn.functional.cross_entropy(model(inputs), _ignored, reduction="none")
_mean = nn.functional.cross_entropy(model(inputs), _ignored)
assert _losses[1] == _losses[3] == 0 and not torch.allclose(_losses.mean(), _mean)
torch.testing.assert_close(_losses.sum() / 2, _mean)
# sphinx_gallery_end_ignore

# %%
# **y.backward(v) computes the gradient of (v * y).sum(), with v as a constant.** For the mean, ``losses.mean().backward()`` is
# simpler. (A label of -100 has the loss 0. Then divide ``losses.sum()`` by the number of labels that count.)

# %%
# What v @ J means
# ----------------
# A smaller function shows the numbers. It has two inputs, three results, and the weights 1, 10 and 100:


def f(x):
    return torch.stack([x[0] * x[1], x[0] ** 2, x[1] ** 2])


x = torch.tensor([2.0, 3.0], requires_grad=True)
v = torch.tensor([1.0, 10.0, 100.0])
f(x).backward(gradient=v)
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [43, 602] and f(x).tolist() == [6, 4, 9]
_y = f(x)
(_pulled,) = torch.autograd.grad(_y, x, _y, retain_graph=True)  # a v made from x
(_square,) = torch.autograd.grad((_y * _y).sum(), x)  # here v is not a constant
(_constant,) = torch.autograd.grad((_y.detach() * f(x)).sum(), x)
assert torch.equal(_pulled, _constant) and torch.equal(_square, 2 * _pulled)
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: The code draws the three matrices with their numbers, and the zeros of J in gray.

import matplotlib.pyplot as plt


def draw_product(v, J, product):
    _, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.set_title("One weight for each row of J; the weighted rows add up")
    for left, top, text, matrix in [
        (0, 1, "v", v[None]),
        (4, 0, "J", J),
        (7, 1, "x.grad", product[None]),
    ]:
        for row, values in enumerate(matrix.tolist(), top):
            for column, value in enumerate(values, left):
                fill = "white" if value else "#e2e8f0"
                ax.add_patch(plt.Rectangle((column, row), 1, 1, fc=fill, ec="#64748b"))
                ax.text(column + 0.5, row + 0.5, f"{value:g}", ha="center", va="center")
        ax.text(left + matrix.shape[1] / 2, 3.4, text, ha="center", family="monospace")
    ax.text(3.5, 1.5, "@", ha="center", va="center")
    ax.text(6.5, 1.5, "=", ha="center", va="center")
    ax.set(xlim=(-0.1, 9.1), ylim=(3.6, -0.1), aspect="equal")
    ax.set_axis_off()


# %%
# Each entry of :math:`y = (x_1 x_2,\; x_1^2,\; x_2^2)` has its own gradient: one row of the *Jacobian matrix* ``J``.
#
# .. math::
#
#    J_{ij} = \frac{\partial y_i}{\partial x_j}, \qquad
#    J = \begin{pmatrix} x_2 & x_1 \\ 2 x_1 & 0 \\ 0 & 2 x_2 \end{pmatrix}
#      = \begin{pmatrix} 3 & 2 \\ 4 & 0 \\ 0 & 6 \end{pmatrix}

J = torch.tensor([[3.0, 2.0], [4.0, 0.0], [0.0, 6.0]])  # by hand

# figure: The row vector v with the entries 1, 10, 100, times the three by two matrix J with the rows 3 2, 4 0 and
#   0 6, gives the row vector 43, 602, which is x.grad.
draw_product(v, J, x.grad)

# sphinx_gallery_start_ignore
assert torch.equal(x.grad, v @ J)
f(x).backward(gradient=v)
assert torch.equal(x.grad, 2 * v @ J)  # backward adds
# sphinx_gallery_end_ignore

# %%
# 43 is 3 from the first row and 40 from the second. 602 is 2 from the first row and 600 from the third. ``J`` has six numbers,
# and ``x.grad`` has room for two. So PyTorch needs weights, to add up the rows. The rule gives the same:

x.grad = None
(v * f(x)).sum().backward()
print("gradient of (v * y).sum():", x.grad.tolist())
assert torch.equal(x.grad, v @ J)

# %%
# In practice, v comes from the loss
# ----------------------------------
# You rarely choose the weights. ``y`` is usually in the middle, and a loss :math:`L` is computed from it. Then :math:`v =
# \partial L / \partial y`. If ``x`` reaches the loss only through ``y``, the chain rule is a vector-Jacobian product:
#
# .. math::
#
#    \frac{\partial L}{\partial x} = \frac{\partial L}{\partial y}\, J = v^\top J

x.grad = None
y = f(x)
y.retain_grad()
L = y.prod()
L.backward()

# graph: L -- The whole computation: what arrives at y is the v for everything before it

whole = x.grad.clone()
print("dL/dy =", y.grad.tolist(), "  dL/dx =", whole.tolist())

# sphinx_gallery_start_ignore
assert L.item() == 6 * 4 * 9 == 2**3 * 3**3 and y.grad.tolist() == [36, 54, 24]
assert whole.tolist() == [3 * 2**2 * 3**3, 3 * 2**3 * 3**2] == [324, 216]
assert torch.equal(y.grad @ J, whole)
_y = f(x)
(_skip,) = torch.autograd.grad(f(x).prod() + x.sum(), x)  # a way around y
assert torch.equal(_skip, whole + 1)
assert _y.prod().grad_fn(torch.tensor(2.0)).tolist() == [72, 108, 48]
assert _y.grad_fn(v) == tuple(v)
_mul, _square, _ = (node for node, _ in _y.grad_fn.next_functions)
assert _mul(v[1]) == (30, 20) and _square(v[1]) == 40
assert _mul.next_functions[0][0](v[1]).tolist() == [10, 0]  # select
# sphinx_gallery_end_ignore

# %%
# For the loss itself, :math:`\partial L / \partial L = 1`: that is the ``v`` that ``loss.backward()`` fills in for you. Each
# operation before it receives a ``v`` for its output, and returns ``v`` times its own Jacobian. It never builds that matrix,
# which would have 10,000,000,000 entries for 100,000 numbers.
#
# So you can cut a network in two, for example to run its halves on two machines. The second half starts from ``h.detach()``, a
# leaf with the same values. Its gradient is the ``v`` of the first half:

first, second = nn.Linear(3, 5), nn.Linear(5, 2)

h = first(inputs).tanh()
received = h.detach().requires_grad_()
nn.functional.cross_entropy(second(received), labels).backward()  # gives dL/dh
h.backward(gradient=received.grad)  # continues from there

in_two = first.weight.grad.clone()
first.zero_grad()
nn.functional.cross_entropy(second(first(inputs).tanh()), labels).backward()
print("same gradient:", torch.allclose(in_two, first.weight.grad))

# sphinx_gallery_start_ignore
torch.testing.assert_close(in_two, first.weight.grad)
_big = torch.ones(100_000, requires_grad=True)
_big.exp().backward(gradient=torch.ones(100_000))
assert _big.numel() ** 2 == 10_000_000_000 and torch.allclose(
    _big.grad, torch.tensor(1.0).exp()
)
_seeds = []
for _seed in (None, torch.tensor(1.0), torch.tensor(0.5)):
    x.grad = None
    f(x).prod().backward(gradient=_seed)
    _seeds.append(x.grad.tolist())
assert _seeds == [[324, 216], [324, 216], [162, 108]]
x.grad = None
# sphinx_gallery_end_ignore

# %%
# The whole Jacobian
# ------------------
# A ``v`` with a single 1 and zeros gives one row of :math:`J`. The loop below takes one pass for each of the three rows. With
# ``is_grads_batched=True``, one pass carries three vectors:

y = f(x)
units = torch.eye(3)

rows = [torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in units]
(batched,) = torch.autograd.grad(y, x, units, is_grads_batched=True)

print(batched)
assert torch.equal(torch.stack(rows), J) and torch.equal(batched, J)

# sphinx_gallery_start_ignore
assert x.grad is None  # torch.autograd.grad fills no leaf
_y, _visits = f(x), []
_y.grad_fn.register_prehook(lambda gradients: _visits.append(1))
for _unit in units:
    torch.autograd.grad(_y, x, _unit, retain_graph=True)
assert len(_visits) == 3
torch.autograd.grad(_y, x, units, is_grads_batched=True)
assert len(_visits) == 4
assert torch.equal(torch.func.jacrev(f)(x.detach()), J)
_zero = torch.tensor(0.0, requires_grad=True)
_pair = torch.stack([_zero, _zero.sqrt()])
assert torch.autograd.grad(_pair, _zero, torch.tensor([1.0, 0.0]))[0].isnan()
# sphinx_gallery_end_ignore

# %%
# Fill only some gradients: ``inputs=``
# -------------------------------------
# Of all leaves, ``backward(inputs=[...])`` fills only those that you name. ``torch.autograd.grad`` fills none: it returns the
# gradients, as a dict if you pass a dict:

model.zero_grad()
nn.functional.cross_entropy(model(inputs), labels).backward(inputs=[model.weight])
print("stored:", [name for name, p in model.named_parameters() if p.grad is not None])

loss = nn.functional.cross_entropy(model(inputs), labels)
gradients = torch.autograd.grad(loss, dict(model.named_parameters()))
print({name: tuple(g.shape) for name, g in gradients.items()})

# sphinx_gallery_start_ignore
assert model.bias.grad is None and torch.equal(model.weight.grad, gradients["weight"])
assert gradients.keys() == {"weight", "bias"}
_z = torch.tensor([1 + 1j], requires_grad=True)
(_z * (2 + 3j)).backward(gradient=torch.tensor([1j]))
assert _z.grad.item() == 3 + 2j and 1j * (2 + 3j) == -3 + 2j  # complex: not v @ J
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Passing ones to silence the error.** ``gradient=torch.ones_like(y)`` gives the gradient of the *sum*. For a loss of each
# sample, that is the gradient of the mean times the size of the batch. Where each input affects only its own result, as in
# ``logits.exp()``, ones give the derivative of each entry. For the softmax they are useless, because the results add up to 1:

logits = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
ones = torch.ones(3)

(of_exp,) = torch.autograd.grad(logits.exp(), logits, grad_outputs=ones)
(of_softmax,) = torch.autograd.grad(logits.softmax(dim=0), logits, grad_outputs=ones)

print("exp:    ", of_exp)
print("softmax: largest entry below 1e-6?", bool(of_softmax.abs().max() < 1e-6))

# sphinx_gallery_start_ignore
_p = logits.detach().softmax(dim=0)
assert torch.allclose(of_exp, logits.detach().exp()) and of_softmax.abs().max() < 1e-6
_last = torch.tensor([0.0, 0.0, 1.0])
(_of_last,) = torch.autograd.grad(logits.softmax(dim=0), logits, grad_outputs=_last)
logits.softmax(dim=0)[2].backward()
assert torch.allclose(logits.grad, _of_last, atol=1e-6)
assert (
    torch.allclose(_of_last, _p[2] * (_last - _p), atol=1e-6)
    and _of_last.abs().max() > 0.1
)
# sphinx_gallery_end_ignore

# %%
# Decide which number you want the gradient of. For one entry, call ``y[2].backward()``. If you want every derivative, see *The
# whole Jacobian* above.
#
# **A** ``v`` **of the wrong shape.** ``v`` needs the shape of ``y``, and is never broadcast. Two calls fail: with the shape of
# ``x``, and with three vectors at once:

raised = []
for wrong in (torch.ones(2), torch.eye(3)):
    try:
        f(x).backward(gradient=wrong)
    except RuntimeError as error:
        raised.append(str(error))
        print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert len(raised) == 2
assert all("Mismatch in shape: grad_output[0]" in message for message in raised)
_refused = 0
for _wrong in (torch.tensor(1.0), torch.ones(1), torch.ones(1, 3), torch.ones(3, 1)):
    try:
        f(x).backward(gradient=_wrong)
    except RuntimeError:
        _refused += 1
assert _refused == 4
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Four samples, one weight: ``losses = (w * samples - targets) ** 2`` with ``samples`` 1, 2, 3, 4, targets 2, 3, 5, 9 and ``w
# = 1``. Which ``v`` makes ``losses.backward(v)`` give the gradient of the mean loss? Which one gives the gradient of the last
# sample alone? How do you get the gradients of the four samples in one call?
#
# .. solution::
#
# For the mean, each weight is one quarter. For the last sample, ``v`` is zero but for a 1 at the end. The four gradients are
# the Jacobian, which is a single column here: pass all unit vectors at once, with ``is_grads_batched=True``. The mean of that
# column is the gradient of the mean.

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

# predict: each -- What are the gradients of the four samples?

# sphinx_gallery_start_ignore
assert each.tolist() == [-2, -4, -12, -40] and mean == -14.5
assert product(torch.full((4,), 0.25)) == torch.autograd.grad(losses.mean(), w)[0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`, the whole Jacobian of larger functions, and what it costs.
# - In PyTorch's reference: `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__ and `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
