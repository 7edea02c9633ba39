r"""
Gradient accumulation and zero_grad
===================================

``backward()`` does not replace ``.grad``, it *adds* to it. So every training loop clears the gradients once for each
step, and so a large batch can be computed in small pieces. This page shows the sum, the difference between clearing
to ``None`` and clearing to zero, and how to accumulate without a change in the result.
"""

# %%
# backward adds
# -------------
# The derivative of :math:`x^2` at 3 is 6. Three backward passes, each on a new graph:

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

x = torch.tensor(3.0, requires_grad=True)
totals = []

for call in range(1, 4):
    (x**2).backward()
    totals.append(x.grad.item())
    print(f"after backward {call}: x.grad = {x.grad.item()}")

# sphinx_gallery_start_ignore
assert totals == [6, 12, 18]
# sphinx_gallery_end_ignore

# %%
# No option was needed for this. ``retain_graph=True``, which is sometimes taken for the switch, keeps the saved
# tensors of one graph for a second pass. It has nothing to do with the sum in ``.grad``.
#
# Adding is the rule that holds inside a graph as well: where several paths meet, their gradients add up. Two losses
# that share ``x`` are one graph if you add them, and two graphs if you do not. The gradient is the same either way.

x.grad = None
(x**2 + 5 * x).backward()
together = x.grad.item()

x.grad = None
(x**2).backward()
(5 * x).backward()

print(f"one backward of the sum: {together}   two backwards: {x.grad.item()}")
assert x.grad.item() == together == 11

# %%
# Clear once for each step
# ------------------------
# A gradient belongs to the point where it was computed. After an optimizer step the parameters are somewhere else,
# and the old gradient is of no use there. Nothing removes it unless you do.
#
# Gradient descent on :math:`w^2 / 2`, whose minimum is 0, with the clearing and without it:


def descend(clear, steps=60, lr=0.1):
    w = torch.tensor(1.0, requires_grad=True)
    path = [w.item()]
    for _ in range(steps):
        if clear:
            w.grad = None
        (w**2 / 2).backward()
        with torch.no_grad():
            w -= lr * w.grad
        path.append(w.item())
    return path


cleared, forgotten = descend(clear=True), descend(clear=False)
print(f"after 60 steps   cleared: {cleared[-1]:.4f}   forgotten: {forgotten[-1]:.4f}")
late = max(abs(w) for w in forgotten[31:])
print(f"largest |w| in the last 30 steps   forgotten: {late:.2f}")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(cleared, color="#2563eb", label="cleared in every step")
ax.plot(forgotten, color="#c2410c", linestyle="--", label="never cleared")
ax.axhline(0, color="#64748b", linewidth=0.8)
ax.set_title("Without clearing, w swings around the minimum and does not settle")
ax.set(xlabel="step", ylabel="w", ylim=(-1.2, 1.7))
ax.legend(loc="upper right", ncols=2)

# figure: Two curves of w over 60 steps, both from 1. With clearing, w falls smoothly to the minimum at 0. Without
#   clearing, w swings between 1 and -1 with a constant height.

# sphinx_gallery_start_ignore
assert abs(cleared[-1] - 0.9**60) < 1e-6 and cleared == sorted(cleared, reverse=True)
swings = [max(map(abs, forgotten[i : i + 20])) for i in (0, 20, 40)]
assert all(0.98 < swing < 1.03 for swing in swings)
assert min(forgotten) < -0.98 and late > 0.98
# sphinx_gallery_end_ignore

# %%
# The sum of all past gradients drives ``w`` past the minimum again and again. No error is raised: a descent that does
# not settle is the only sign.

# %%
# None and zero are not the same
# ------------------------------
# ``optimizer.zero_grad()`` sets ``.grad`` to ``None``; ``set_to_none=False`` fills it with zeros instead. Since
# PyTorch 2.0 ``None`` is the default.

w = torch.tensor(1.0, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

(w**2 / 2).backward()
optimizer.zero_grad(set_to_none=False)
print("zero_grad(set_to_none=False): w.grad is", w.grad)

(w**2 / 2).backward()
optimizer.zero_grad()
print("zero_grad():                  w.grad is", w.grad)

# sphinx_gallery_start_ignore
assert w.grad is None
(w**2 / 2).backward()
kept = w.grad
optimizer.zero_grad(set_to_none=False)
assert w.grad is kept and kept == 0
# sphinx_gallery_end_ignore

# %%
# For the next backward it makes no difference: to nothing or to zero, the same gradient is added. For the *optimizer*
# it does. A parameter whose gradient is ``None`` is left out of the step. One whose gradient is zero takes part, and
# everything that moves parameters without a gradient still acts on it: momentum, weight decay, the averages of Adam.
#
# To see it, a parameter takes one step with the gradient 1, and a second one with none or with zero.


def second_step(second_gradient, optimizer_class, **options):
    w = torch.tensor(1.0, requires_grad=True)
    optimizer = optimizer_class([w], lr=0.1, **options)
    values = []
    for gradient in (torch.tensor(1.0), second_gradient):
        w.grad = gradient
        optimizer.step()
        values.append(w.item())
    return values


# %%
# Four optimizers, all with the learning rate 0.1:

rows = {}
for name, choice, options in [
    ("SGD", torch.optim.SGD, {}),
    ("SGD, momentum=0.9", torch.optim.SGD, {"momentum": 0.9}),
    ("SGD, weight_decay=0.5", torch.optim.SGD, {"weight_decay": 0.5}),
    ("Adam", torch.optim.Adam, {}),
]:
    first, with_none = second_step(None, choice, **options)
    _, with_zero = second_step(torch.tensor(0.0), choice, **options)
    rows[name] = {
        "w after gradient 1": first,
        "then grad None": with_none,
        "then grad 0": with_zero,
    }

table = pd.DataFrame(rows).T.rename_axis(index=None, columns="optimizer")

# sphinx_gallery_start_ignore
assert (table["then grad None"] == table["w after gradient 1"]).all()
moved = table["then grad 0"] != table["w after gradient 1"]
assert moved.tolist() == [False, True, True, True]
assert table.loc["SGD, momentum=0.9"].round(6).tolist() == [0.9, 0.9, 0.81]
# sphinx_gallery_end_ignore
table.map("{:.4f}".format)

# %%
# With momentum, ``w`` goes on from 0.9 to 0.81 although its gradient is zero: the step is the old one times 0.9. With
# ``None`` it stays at 0.9. This matters for parameters that are used in some steps only, such as one of several heads
# or a layer that is frozen later.

# %%
# Micro-batches: one large batch in pieces
# ----------------------------------------
# Because gradients add, a batch that does not fit into memory can be computed in pieces. Each piece builds its own
# graph, and ``backward`` frees what it saved before the next one is built. The optimizer steps once, at the end.
#
# One point needs care. A mean over twelve samples is not the sum of three means over four: it is a third of that sum.
# So each loss is divided by the number of pieces.

torch.manual_seed(0)
data = torch.randn(12, 8, dtype=torch.float64)
targets = torch.randn(12, 1, dtype=torch.float64)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).double()


def gradient(model, pieces, divide=True):
    model.zero_grad()
    for rows in torch.arange(12).chunk(pieces):
        loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
        (loss / pieces if divide else loss).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


large = gradient(model, pieces=1)
divided = gradient(model, pieces=3)
undivided = gradient(model, pieces=3, divide=False)

print("divided:     equal to the large batch?", torch.allclose(divided, large))
print(f"not divided: {undivided.norm() / large.norm():.4f} times the large batch")

# sphinx_gallery_start_ignore
assert torch.allclose(divided, large, rtol=1e-10, atol=1e-12)
assert torch.allclose(undivided, 3 * large, rtol=1e-10, atol=1e-12)
held = {}
for size in (12, 4):
    counted = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t, counted=counted: counted.setdefault(
            t.untyped_storage().data_ptr(), t
        ),
        lambda t: t,
    ):
        loss = model(data[:size]).square().mean()
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    held[size] = sum(t.numel() for key, t in counted.items() if key not in own)
    del loss, counted
assert held[12] > 2 * held[4]
# sphinx_gallery_end_ignore

# %%
# The same up to rounding. The equality has a condition: every sample must be treated independently of the others in
# its batch. Batch normalisation is not like that, because in training it uses the mean and the variance of the
# samples that it sees at one time. Layer normalisation and group normalisation look at one sample at a time.

differences = {}

for layer in (nn.BatchNorm1d(16), nn.LayerNorm(16), nn.GroupNorm(4, 16)):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), layer, nn.Linear(16, 1)).double()
    large = gradient(net, pieces=1)
    difference = (gradient(net, pieces=3) - large).norm() / large.norm()
    differences[type(layer).__name__] = difference
    print(f"{type(layer).__name__:<12} relative difference {difference:.2f}")

assert differences["BatchNorm1d"] > 0.1 and differences["LayerNorm"] < 1e-12

# sphinx_gallery_start_ignore
assert differences["GroupNorm"] < 1e-12
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Clearing at the wrong place.** Between ``backward`` and ``step``, ``zero_grad`` removes exactly what the step
# needs. Nothing is trained, and nothing complains.

w = torch.tensor(1.0, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)

for _ in range(100):
    (w**2 / 2).backward()
    optimizer.zero_grad()
    optimizer.step()

print(f"w after 100 steps: {w.item()}")
assert w.item() == 1.0

# %%
# The order is ``zero_grad``, ``backward``, ``step``. With micro-batches: ``zero_grad`` once, all the backward passes,
# ``step`` once. ``DistributedDataParallel`` exchanges gradients in each backward pass; its `no_sync()
# <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync>`__
# around all micro-batches but the last leaves that to the last.
#
# **Keeping a gradient without a copy.** The sum is formed in place, in the tensor that ``.grad`` already is. A list
# of ``w.grad`` then holds the same tensor several times.

w.grad = None
history, copies = [], []
for _ in range(3):
    (w**2 / 2).backward()
    history.append(w.grad)
    copies.append(w.grad.clone())

print("kept:  ", [g.item() for g in history])
print("copied:", [g.item() for g in copies])
assert history[0] is history[2] and [g.item() for g in copies] == [1, 2, 3]

# %%
# Exercise
# --------
# Twelve samples, but the pieces have 5, 5 and 2 of them. Dividing each mean by 3 no longer gives the gradient of the
# large batch. By what do you have to scale, and why?
#
# .. solution::
#
# Each sample must count :math:`\frac{1}{12}`. A mean over :math:`n` samples gives each of them :math:`\frac{1}{n}`,
# so the loss of a piece is multiplied by :math:`\frac{n}{12}`. Dividing by 3 gives the samples of the last piece a
# weight of :math:`\frac{1}{6}`, twice what they should have. To sum the squares and divide by 12 is the same.


def uneven(scale):
    model.zero_grad()
    for rows in torch.arange(12).split(5):
        loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
        (loss * scale(len(rows))).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


large = gradient(model, pieces=1)
print("divided by 3:   ", torch.allclose(uneven(lambda n: 1 / 3), large))
print("times n over 12:", torch.allclose(uneven(lambda n: n / 12), large))

# sphinx_gallery_start_ignore
assert not torch.allclose(uneven(lambda n: 1 / 3), large, rtol=1e-2)
assert torch.allclose(uneven(lambda n: n / 12), large, rtol=1e-10, atol=1e-12)
assert [len(rows) for rows in torch.arange(12).split(5)] == [5, 5, 2]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, what one backward computes.
# - Next: :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`, gradients that are not on leaves.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, what backward frees, and what ``retain_graph`` keeps.
# - In PyTorch's reference: `Optimizer.zero_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>`__ and `accumulation
#   with mixed precision <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation>`__.
