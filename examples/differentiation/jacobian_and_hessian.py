r"""
Jacobian and Hessian in PyTorch: a loop, or torch.func
======================================================

The Jacobian holds the derivative of every output with respect to every input, and the Hessian every second derivative
of a scalar. PyTorch has two sets of functions for them, ``torch.autograd.functional`` and ``torch.func``. They return
the same numbers, but the first runs a loop in Python, and the second one vectorised pass. This page shows what comes
out, how the time differs, and how to use a Jacobian or a Hessian without ever building it.
"""

# %%
# The shape: outputs first, then inputs
# -------------------------------------
# ``J[i, j]`` is the derivative of output ``i`` with respect to input ``j``. With more dimensions the rule stays the
# same: the shape of the Jacobian is the shape of the output followed by the shape of the input. Three functions, to a
# scalar, a vector and a matrix:

import time
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.functional import jacobian
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

torch.manual_seed(0)
linear = nn.Linear(4, 2)


def norm(x):
    return x.square().sum()


def pool(image):
    return F.avg_pool2d(image[None], 2)[0]


# %%
# ``jacobian(f, x)`` from ``torch.autograd.functional`` returns a tensor. ``jacrev(f)`` from ``torch.func`` returns a
# *function* that computes it. Both agree:

rows = {}
for name, f, x in [
    ("sum of squares", norm, torch.randn(3)),
    ("Linear(4, 2)", linear, torch.randn(4)),
    ("2x2 average pool", pool, torch.randn(4, 4)),
]:
    J = jacobian(f, x)
    rows[name] = {"input": x.shape, "output": f(x).shape, "Jacobian": J.shape}
    assert torch.allclose(J, jacrev(f)(x))

table = pd.DataFrame(rows).T.map(lambda shape: str(tuple(shape)))

# sphinx_gallery_start_ignore
assert table["Jacobian"].tolist() == ["(3,)", "(2, 4)", "(2, 2, 4, 4)"]
_x = torch.randn(3)
assert torch.allclose(jacobian(norm, _x), 2 * _x)
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="function")

# %%
# For a scalar output the Jacobian has the shape of the input: it is the gradient. For a linear layer
# :math:`y = Wx + b` the Jacobian is the weight, wherever it is evaluated:

J = jacrev(linear)(torch.randn(4))
print(J.detach())
assert torch.equal(J, linear.weight)

# %%
# For the pool, ``J[i, j]`` is a whole image: how much each pixel counts for output ``(i, j)``.

# figure: Four squares of 4 by 4 pixels in a row, one for each output of the pool. In each, one quarter is dark and
#   marked 0.25, top left for output (0, 0), top right for (0, 1) and so on; the other twelve pixels are 0.
J = jacrev(pool)(torch.randn(4, 4))
figure, axes = plt.subplots(1, 4, figsize=(7, 2.3), layout="constrained")
titles = ["J[0, 0]", "J[0, 1]", "J[1, 0]", "J[1, 1]"]
for image, title, ax in zip(J.flatten(0, 1), titles, axes, strict=True):
    ax.imshow(image, cmap="Blues", vmin=-0.05, vmax=0.5)
    for row in range(4):
        for column in range(4):
            number = f"{image[row, column]:g}"
            ax.text(column, row, number, ha="center", va="center", fontsize=8)
    ax.set_title(title)
    ax.set_axis_off()
figure.suptitle("Jacobian of a 2x2 average pool: one image for each output")

# sphinx_gallery_start_ignore
for _i in range(2):
    for _j in range(2):
        _expected = torch.zeros(4, 4)
        _expected[2 * _i : 2 * _i + 2, 2 * _j : 2 * _j + 2] = 0.25
        assert torch.equal(J[_i, _j], _expected)
# sphinx_gallery_end_ignore

# %%
# A loop, or one pass
# -------------------
# Backward computes :math:`v^\top J`, so a vector with a single 1 gives one row of the Jacobian. ``jacobian`` does
# that in a Python loop, one backward pass for each output. ``jacrev`` runs one backward pass under ``vmap``, for all
# these vectors together, and so does ``jacobian`` with ``vectorize=True``. ``jacfwd`` makes columns, in :ref:`forward
# mode <sphx_glr_gallery_differentiation_forward_mode.py>`. A hook counts the backward passes, for a layer with 32
# inputs and 32 outputs:

ways = {
    "jacobian": jacobian,
    "jacobian, vectorize=True": partial(jacobian, vectorize=True),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
}


def layer(n, hook=None):
    weight = torch.randn(n, n) / n**0.5

    def f(x):
        y = torch.tanh(weight @ x)
        if hook and y.requires_grad:
            y.register_hook(hook)
        return y

    return f


counts = {}
for name, way in ways.items():
    passes = []
    way(layer(32, passes.append), torch.randn(32))
    counts[name] = len(passes)
    print(f"{name:<25} {counts[name]:>2}")
assert list(counts.values()) == [32, 1, 1, 0]

# sphinx_gallery_start_ignore
for _n in (2, 16):
    _f, _x = layer(_n), torch.randn(_n)
    for _way in ways.values():
        assert torch.allclose(_way(_f, _x), jacobian(_f, _x), atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# With many outputs, one pass over larger tensors takes less time than many over small ones. Each way is timed in
# turn, on one thread: how many times as fast as the loop is it? The first round is left out, since a first call has
# more to set up.

# varies: Ratios of times depend on the machine and its load.
threads = torch.get_num_threads()
torch.set_num_threads(1)


def seconds(way, f, x):
    start = time.perf_counter()
    way(f, x)
    return time.perf_counter() - start


sizes = [2, 8, 32, 128]
gain = {name: [] for name in ways if name != "jacobian"}
for n in sizes:
    f, x = layer(n), torch.randn(n)
    rounds = [[seconds(way, f, x) for way in ways.values()] for _ in range(6)]
    loop, *others = [min(times) for times in zip(*rounds[1:], strict=True)]
    for ratios, other in zip(gain.values(), others, strict=True):
        ratios.append(loop / other)
torch.set_num_threads(threads)

for name, ratios in gain.items():
    print(f"{name:<25} n = 2: {ratios[0]:4.1f}   n = 128: {ratios[-1]:4.1f}")
    assert ratios[-1] > 1 and ratios[-1] > ratios[0]

# %%
# At every size, as a figure. Below the line at 1, the loop is the faster one:

# varies: Ratios of times depend on the machine and its load.

# figure: Three curves over the size of the layer, from 2 to 128, on logarithmic axes: how many times as fast as the
#   loop are jacrev, jacfwd and jacobian with vectorize=True. Each ends above the line at 1, higher than it begins.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, color, style in [
    ("jacrev", "#2563eb", "o-"),
    ("jacfwd", "#047857", "s--"),
    ("jacobian, vectorize=True", "#c2410c", "^:"),
]:
    ax.loglog(sizes, gain[name], style, color=color, label=name)
ax.axhline(1, color="#64748b", linewidth=1)
ax.set_xticks(sizes, sizes)
ax.set_yticks([0.5, 1, 2, 5, 10], [0.5, 1, 2, 5, 10])
ax.minorticks_off()
ax.set(xlabel="inputs and outputs n", ylabel="time of the loop / time")
ax.set_title("How many times as fast as the loop, by size")
ax.legend()

# sphinx_gallery_start_ignore
assert all(ratios[-1] > max(1, ratios[0]) for ratios in gain.values())
# sphinx_gallery_end_ignore

# %%
# vjp and jvp: products with the Jacobian
# ---------------------------------------
# Often only a product with the Jacobian is needed: :math:`v^\top J` (``vjp``, what backward does) or :math:`J t`
# (``jvp``, forward mode). Neither builds the Jacobian.

x, v, t = torch.randn(4), torch.randn(2), torch.randn(4)
y, pull_back = vjp(linear, x)
(row_product,) = pull_back(v)
y, column_product = jvp(linear, (x,), (t,))

print("v^T J:", row_product.detach())
print("J t:  ", column_product.detach())
assert torch.allclose(row_product, v @ linear.weight)
assert torch.allclose(column_product, linear.weight @ t)

# %%
# The Hessian
# -----------
# The Hessian is the Jacobian of the gradient, and ``hessian(f)`` is ``jacfwd(jacrev(f))``: forward mode over the
# backward pass. The Rosenbrock function has a minimum at (1, 1), where its Hessian can be worked out by hand.


def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


p = torch.tensor([1.0, 1.0])
H = hessian(rosenbrock)(p)
print(H)
print("eigenvalues:", [round(value, 2) for value in torch.linalg.eigvalsh(H).tolist()])
assert torch.equal(H, torch.tensor([[802.0, -400.0], [-400.0, 200.0]]))
assert torch.equal(H, jacfwd(jacrev(rosenbrock))(p))
assert torch.equal(H, torch.autograd.functional.hessian(rosenbrock, p))

# sphinx_gallery_start_ignore
_low, _high = torch.linalg.eigvalsh(H).tolist()
assert 0 < 2000 * _low < _high and torch.equal(grad(rosenbrock)(p), torch.zeros(2))
# sphinx_gallery_end_ignore

# %%
# Both eigenvalues are positive, so the point is a minimum. One is over two thousand times the other: a long, narrow
# valley, which is why this function is hard for gradient descent.

# %%
# Hessian-vector products
# -----------------------
# A Hessian of ``n`` inputs has :math:`n^2` entries. The product :math:`Hv` is the directional derivative of the
# gradient, so one forward-mode pass over one backward pass gives it: a gradient and its tangent, ``n`` numbers each.
# Two backward passes do it as well, without ``torch.func``.


def chain(x):
    return (1 - torch.cos(x[1:] - x[:-1])).sum() + 0.1 * (x**4).sum()


def hvp(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]


def hvp_two_backwards(f, x, v):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.autograd.grad(gradient, x, v)[0]


x, v = torch.randn(2, 100, dtype=torch.float64)
H = hessian(chain)(x)
assert torch.allclose(hvp(chain, x, v), H @ v)
assert torch.allclose(hvp_two_backwards(chain, x, v), H @ v)
print(f"H has {H.numel():,} entries, {(H != 0).sum():,} of them not zero")
print(f"Hv has {v.numel()}")

# sphinx_gallery_start_ignore
assert H.numel() == 10_000 and (H != 0).sum() == 100 + 2 * 99
# sphinx_gallery_end_ignore

# %%
# For a network with a million parameters, the Hessian would have :math:`10^{12}` entries. Its products with vectors
# are within reach, and methods such as conjugate gradients or power iteration need nothing else.

# %%
# What people get wrong
# ---------------------
# **The Jacobian of a batch.** Called with a batch, ``jacrev`` takes the batch for one input. Most of the result says
# that one sample does not depend on another. ``vmap`` adds the batch dimension outside:

batch = torch.randn(3, 4)
J = jacrev(linear)(batch)
per_sample = vmap(jacrev(linear))(batch)

zeros = (J == 0).sum()
print(f"jacrev(f):       {tuple(J.shape)}, {zeros} of {J.numel()} entries are zero")
print(f"vmap(jacrev(f)): {tuple(per_sample.shape)}")
for i in range(3):
    assert torch.equal(J[i, :, i], per_sample[i])

# sphinx_gallery_start_ignore
assert (J == 0).sum() == 48 and J.numel() == 72
# sphinx_gallery_end_ignore

# %%
# **A Jacobian in one piece.** One pass carries all rows, and needs memory for all of them. ``chunk_size`` cuts it
# into passes of so many rows.

passes = []
J = jacrev(layer(32, passes.append), chunk_size=8)(torch.randn(32))
print("rows:", len(J), "  backward passes:", len(passes))
assert len(J) == 32 and len(passes) == 4

# %%
# **Training on a Jacobian that is detached.** ``torch.autograd.functional.jacobian`` returns a tensor without
# history, even when its input requires a gradient.

x = torch.randn(4, requires_grad=True)
f = layer(4)
try:
    jacobian(f, x).square().sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "does not require grad and does not have a grad_fn" in str(error)

# %%
# Ask for the history with ``create_graph=True``, or use ``jacrev``, which keeps it:

jacobian(f, x, create_graph=True).square().sum().backward()
one = x.grad.clone()
x.grad = None
jacrev(f)(x).square().sum().backward()
print("the same gradient:", torch.allclose(x.grad, one))
assert torch.allclose(x.grad, one) and one.abs().sum() > 0

# %%
# Exercise
# --------
# The largest eigenvalue of the Hessian bounds the step of gradient descent. Find that of ``chain`` at a random point
# with 100 inputs, without building the Hessian.
#
# .. solution::
#
# Power iteration: multiply a vector by :math:`H` again and again, and scale it to length 1. It turns to the
# eigenvector of the eigenvalue with the largest absolute value, here a positive one. The factor by which the
# multiplication makes it longer is the eigenvalue.

torch.manual_seed(1)
x, v = torch.randn(2, 100, dtype=torch.float64)
for step in range(1, 17):
    v = hvp(chain, x, v / v.norm())
    if step % 4 == 0:
        print(f"step {step:>2}: {v.norm():.4f}")

exact = torch.linalg.eigvalsh(hessian(chain)(x))
print(f"exact:   {exact[-1]:.4f}")
assert torch.isclose(v.norm(), exact[-1], rtol=1e-3) and exact[-1] > -exact[0]

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_higher_order.py`, second derivatives with ``create_graph``.
# - Next: :ref:`sphx_glr_gallery_differentiation_forward_mode.py`, the mode behind ``jacfwd`` and ``jvp``.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, what one backward pass computes.
# - In PyTorch's reference: `torch.func <https://docs.pytorch.org/docs/stable/func.html>`__ and
#   `Functional higher level API <https://docs.pytorch.org/docs/stable/autograd.html#functional-higher-level-api>`__.
