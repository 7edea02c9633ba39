r"""
NaN gradients: torch.where, sqrt at 0, relu at 0
================================================

.. in-short::

   A gradient can be NaN although every value of the forward pass is fine. A common cause is 0 times infinity: the slope of
   ``sqrt`` at 0 is infinite. A ``torch.where`` after the root is too late. So choose a safe input *before* the root:
   ``torch.where(x == 0, 0.0, torch.where(x == 0, 1.0, x).sqrt())``. (If the *value* is NaN already, look in the forward pass
   first.) At a kink, as in ``relu`` at 0, no derivative exists and PyTorch picks a slope.
"""

# %%
# The problem: the loss is fine and the gradient is NaN
# -----------------------------------------------------
# You know that the slope of ``sqrt`` at 0 is infinite, so you guard it with ``torch.where``. The loss stays finite. But after
# one step of SGD or Adam, your weights are NaN.

import torch

x = torch.tensor(0.0, requires_grad=True)
root = x.sqrt()
y = torch.where(x > 0, root, x)

# graph: y -- Two paths from x to y: inf times 0 along the branch not taken, 1 along the other

# %%
# Backward gives:

root.retain_grad()
y.backward()
print("y:", y.item(), "  root.grad:", root.grad.item(), "  x.grad:", x.grad.item())

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
assert y == 0 and root.grad == 0 and x.grad.isnan()
assert torch.func.grad(torch.sqrt)(torch.tensor(0.0)) == torch.inf

import warnings

named = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        with torch.autograd.detect_anomaly():
            torch.where(x > 0, x.sqrt(), x).backward()
    except RuntimeError as error:
        named.append(str(error))
assert len(named) == 1 and "Function 'SqrtBackward0' returned nan values" in named[0]
# sphinx_gallery_end_ignore

# %%
# Why: backward follows both branches
# -----------------------------------
# Both branches are computed, and ``torch.where`` picks from the two. Backward follows both paths too. The branch taken
# receives the gradient of ``y``. The branch not taken receives 0. Through the root that becomes 0 times an infinite slope,
# and :math:`0 \cdot \infty` is NaN. The two paths meet in ``x``, and a number plus NaN is NaN.
#
# :ref:`Anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>` names the node that made this NaN: ``SqrtBackward0``.
# The rule: **keep the bad input out of the operation, because masking its result is too late.** So put a second ``where``
# before the root. Where ``x`` is not positive, the root then sees 1, and 0 times its finite slope is 0:


def one_where(x):
    return torch.where(x > 0, x.sqrt(), x)


def two_where(x):
    inside = torch.where(x > 0, x, 1.0)
    return torch.where(x > 0, inside.sqrt(), x)


def gradient(function, x):
    x = torch.tensor(x, requires_grad=True)
    return torch.autograd.grad(function(x).sum(), x)[0]


for function in (one_where, two_where):
    print(function.__name__, gradient(function, [-1.0, 0.0, 4.0]).tolist())

# sphinx_gallery_start_ignore
points = torch.tensor([-1.0, 0.0, 4.0])
assert torch.equal(one_where(points), two_where(points))
assert gradient(one_where, points.tolist())[:2].isnan().all()
assert gradient(two_where, points.tolist()).tolist() == [1, 1, 0.25]
_safe = gradient(lambda x: torch.where(x > 0, x, 1.0).sqrt(), [-1.0, -0.0, 0.0, 4.0])
assert _safe.tolist() == [0, 0, 0, 0.25]


def _box(x):
    return torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0)


assert gradient(_box, [-1.0, -0.0, 0.0, 4.0]).tolist() == [0, 0, 0, 0.25]
assert _box(torch.tensor([-1.0, -0.0, 0.0, 4.0, torch.nan])).tolist() == [0, 0, 0, 2, 0]
assert gradient(lambda x: torch.where(x > 0, x**0.5, x), [0.0]).isnan()
# sphinx_gallery_end_ignore

# %%
# More places where gradients become NaN, infinite or zero
# --------------------------------------------------------
# Real data reaches such points: equal eigenvalues, a probability of 0, a row that is masked as a whole, a vector of zeros.
#
# .. how-measured:: This code computes each expression at its point, and the gradient of its sum.

import warnings

import pandas as pd
import torch.nn.functional as F

inf = float("inf")
masked = torch.tensor([-inf, -inf])
cases = [
    ("x.acos()", torch.acos, [1.0]),
    ("x.var(), one element", torch.var, [2.0]),
    ("-(p * p.log()).sum()", lambda p: -(p * p.log()).sum(), [0.0, 1.0]),
    ("xlogy(p, p).sum()", lambda p: torch.xlogy(p, p).sum(), [0.0, 1.0]),
    ("softmax(x + mask), all -inf", lambda x: (x + masked).softmax(0), [1.0, 2.0]),
    ("logsumexp(x + mask), all -inf", lambda x: (x + masked).logsumexp(0), [1.0, 2.0]),
    ("F.normalize(x), first", lambda x: F.normalize(x, dim=0)[0], [0.0, 0.0]),
    ("eigh(A), eigenvectors", lambda a: torch.linalg.eigh(a)[1], [[1.0, 0], [0, 1.0]]),
    ("(x - 1).log(), x < 1", lambda x: (x - 1).log(), [0.0]),
    ("x.round()", torch.round, [0.3]),
    ("x.sign()", torch.sign, [0.3]),
    ("x.floor()", torch.floor, [0.3]),
]


def tabulate_gradients(cases):
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the variance of one element warns
        for name, function, at in cases:
            value, slope = function(torch.tensor(at)), gradient(function, at)
            rows[name] = {
                "at": str(at),
                "value": f"{value.flatten()[0].item():.4g}",
                "gradient": f"{slope.flatten()[0].item():.4g}",
            }
    return pd.DataFrame(rows).T.rename_axis(index=None, columns="expression")


# %%
# The table shows the first element of the value and of the gradient. The functions of the last three rows have the gradient 0
# at their steps and between them.

# sphinx_gallery_start_ignore
_rows = tabulate_gradients(cases)
assert [*zip(_rows.value, _rows.gradient, strict=True)] == [
    *[("0", "-inf"), ("nan", "nan"), ("nan", "nan"), ("0", "nan"), ("nan", "nan")],
    *[("-inf", "nan"), ("0", "1e+12"), ("1", "nan"), ("nan", "-1")],
    *[("0", "0"), ("1", "0"), ("0", "0")],
]
for function in (torch.round, torch.sign, torch.floor):
    assert not gradient(function, [-1.5, -1.0, 0.0, 0.5, 1.0]).any()
    assert not gradient(function, torch.linspace(-3, 3, 61).tolist()).any()
for _type in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    _p = torch.tensor([0.0, 1.0], dtype=_type, requires_grad=True)
    _entropy = -(_p * _p.clamp(min=torch.finfo(_type).tiny).log()).sum()
    assert _entropy == 0
    (_entropy,) = torch.autograd.grad(_entropy, _p)
    assert _entropy.isfinite().all()
    _x = torch.tensor([0.0, 4.0, torch.nan], dtype=_type, requires_grad=True)
    _root = torch.where(_x == 0, 0.0, torch.where(_x == 0, 1.0, _x).sqrt())  # the box
    assert _root[:2].tolist() == [0, 2] and _root[2].isnan()  # a NaN stays visible
    assert torch.autograd.grad(_root.sum(), _x)[0][:2].tolist() == [0, 0.25]
_lowest = torch.full((2,), torch.finfo(torch.float32).min)
_mask = torch.tensor([True, True])


def _masked(x):
    filled = x.masked_fill(_mask, torch.finfo(x.dtype).min)
    return filled.softmax(0).masked_fill(_mask, 0)


_half = torch.tensor([-30.0, -30.0], dtype=torch.float16)
assert (_half + torch.finfo(_half.dtype).min).isinf().all()
assert _masked(_half).tolist() == [0, 0]
assert gradient(_masked, [1.0, 2.0]).tolist() == [0, 0] == _masked(_lowest).tolist()
# sphinx_gallery_end_ignore
tabulate_gradients(cases)

# %%
# The cure is again a safe input. For the entropy, write ``p * p.clamp(min=torch.finfo(p.dtype).tiny).log()``. For a softmax
# under a mask, use ``x.masked_fill(mask, torch.finfo(x.dtype).min)`` (added to ``x``, that number can become ``-inf``), and set
# the masked weights to 0 after the softmax.

# %%
# Kinks: PyTorch picks a slope
# ----------------------------
# :math:`\max(x, 0)` has a kink at 0: slope 0 on the left, slope 1 on the right. The four ways to write it below have equal
# values (but ``where`` turns a NaN into 0), and different gradients at 0: three in PyTorch 2.13, two from 2.14 on. Each of them
# trains a weight that starts at 0 and should reach 1:

versions = {
    "torch.relu(x)": torch.relu,
    "torch.where(x > 0, x, 0)": lambda x: torch.where(x > 0, x, 0.0),
    "torch.maximum(x, 0)": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "x.clamp(min=0)": lambda x: x.clamp(min=0),
}
for name, function in versions.items():
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        ((function(weight) - 1) ** 2).sum().backward()
        optimizer.step()
    slope = gradient(function, [0.0]).item()
    print(f"{name:<25} gradient at 0: {slope}   trained: {weight.item():.2f}")

# sphinx_gallery_start_ignore
points = torch.linspace(-2, 2, 9)
_slopes = (0, 0, 0.5, 0 if TORCH >= (2, 14) else 1)
for name, at_zero in zip(versions, _slopes, strict=True):
    assert torch.equal(versions[name](points), torch.relu(points))
    assert gradient(versions[name], [-1.0, 0.0, 1.0]).tolist() == [0, at_zero, 1]
    assert (torch.relu(points) >= at_zero * points).all()
    weight = torch.zeros(1)
    for _ in range(200):
        step = gradient(lambda w, f=versions[name]: (f(w) - 1) ** 2, weight.tolist())
        weight -= 0.1 * step
    assert abs(weight.item() - (at_zero > 0)) < 1e-3
    assert versions[name](torch.tensor(torch.nan)).isnan() != ("where" in name)
weight = torch.full((1,), 0.5)  # inside the bound it trains, whatever the slope at 0
for _ in range(200):
    weight -= 0.1 * gradient(lambda w: (w.clamp(min=0) - 1) ** 2, weight.tolist())
assert abs(weight.item() - 1) < 1e-3
# sphinx_gallery_end_ignore

# %%
# No slope from 0 to 1 is wrong: each is a *subgradient*, the slope of a line that touches the curve at the kink and is
# nowhere above it. At a start of exactly 0 the choice decides whether the weight moves.
#
# .. torch-changed:: 2.14
#    :probe: kinks: x.clamp(0, 1) at x = [0, 1]
#
#    The gradient of ``clamp`` at a bound that is a number was made 0 on purpose (`pytorch#191142
#    <https://github.com/pytorch/pytorch/pull/191142>`__). So on 2.14 the last weight above stays at 0, too. Start it inside the
#    bounds, or write the old gradient of ``x.clamp(0, 1)`` yourself: ``torch.where((x < 0) | (x > 1), x.detach().clamp(0, 1),
#    x)``. (At NaN the two differ.)
#
# .. how-measured:: This code draws functions and their gradients, with a dot for the gradient at each kink.

import matplotlib.pyplot as plt


def plot_values_and_gradients(curves):
    x = torch.arange(-200, 201) / 100
    figure, axes = plt.subplots(
        2, 3, figsize=(7, 3.8), sharex=True, sharey="row", layout="constrained"
    )
    columns = zip(curves.items(), axes.T, strict=True)
    for (name, (function, kinks)), (top, bottom) in columns:
        slope, at_kinks = gradient(function, x.tolist()), gradient(function, kinks)
        slope[torch.isin(x, torch.tensor(kinks))] = torch.nan  # a gap in the curve
        top.plot(x, function(x), color="#2563eb")
        top.plot(kinks, function(torch.tensor(kinks)), "o", color="#1e293b")
        bottom.plot(x, slope, color="#c2410c")
        bottom.plot(kinks, at_kinks, "o", color="#1e293b")
        top.set_title(name)
    axes[0, 0].set_ylabel("value")
    axes[1, 0].set_ylabel("gradient")
    figure.suptitle("What autograd returns at a kink")


# %%
# Three functions with kinks, and a dot for what autograd returns there:

curves = {
    "torch.relu(x)": (torch.relu, [0.0]),
    "torch.abs(x)": (torch.abs, [0.0]),
    "x.clamp(0, 1)": (lambda x: x.clamp(0, 1), [0.0, 1.0]),
}
# figure: Values above, gradients below, for relu, abs and clamp. The gradient jumps at each kink, and a dot marks
#   what autograd returns there: 0 for relu, 0 for abs, halfway between -1 and 1, and at both edges of clamp 1
#   (0 since PyTorch 2.14).
plot_values_and_gradients(curves)

# sphinx_gallery_start_ignore
_at_bound = 0 if TORCH >= (2, 14) else 1
_sums = [gradient(*case).sum().item() for case in curves.values()]
assert _sums == [0, 0, 2 * _at_bound]
assert gradient(*curves["x.clamp(0, 1)"]).tolist() == [_at_bound] * 2


def _old_clamp(x):
    return torch.where((x < 0) | (x > 1), x.detach().clamp(0, 1), x)


_around = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, torch.nan])
assert gradient(_old_clamp, _around.tolist()).tolist()[:5] == [0, 1, 1, 1, 0]
assert torch.equal(_old_clamp(_around)[:5], _around.clamp(0, 1)[:5])
assert _old_clamp(_around)[5].isnan() and _around.clamp(0, 1)[5].isnan()
assert gradient(_old_clamp, [torch.nan]) == 1
assert gradient(lambda x: x.clamp(0, 1), [torch.nan]) == 0
assert gradient(torch.abs, [-0.1, 0.1]).tolist() == [-1, 1]
# sphinx_gallery_end_ignore

# %%
# PyTorch's rule, linked below: at a kink of a convex function, the subgradient with the smallest norm. At 0, ``relu`` and
# ``abs`` follow it. ``clamp`` does since PyTorch 2.14; in 2.13, it passes the gradient on at its lower edge.

# %%
# Ties in max
# -----------
# Where several elements are the maximum, ``amax`` and ``max()`` split the gradient evenly. The other three pick an index,
# and send all of it to that index:

for name, function in {
    "x.amax()": lambda x: x.amax(),
    "x.max()": lambda x: x.max(),
    "x.max(0).values": lambda x: x.max(0).values,
    "x.topk(1).values": lambda x: x.topk(1).values,
    "max_pool1d(x, 3)": lambda x: torch.max_pool1d(x[None], 3),
}.items():
    print(f"{name:<17} {gradient(function, [1.0, 3.0, 3.0]).tolist()}")

# sphinx_gallery_start_ignore
assert gradient(lambda x: x.amax(), [1.0, 3.0, 3.0]).tolist() == [0, 0.5, 0.5]
assert gradient(lambda x: x.max(), [1.0, 3.0, 3.0]).tolist() == [0, 0.5, 0.5]
for _split in (torch.amax, torch.max):
    assert gradient(_split, [[3.0, 0.0], [3.0, 3.0]]).eq(1 / 3).sum() == 3
for pick in (
    lambda x: x.max(0).values,
    lambda x: x.topk(1).values,
    lambda x: torch.max_pool1d(x[None], 3),
):
    assert sorted(gradient(pick, [1.0, 3.0, 3.0]).tolist()) == [0, 0, 1]
# sphinx_gallery_end_ignore

# %%
# So ``x.max()`` and ``x.max(0).values`` are the same number with different gradients.
#
# .. torch-changed:: 2.14
#    :probe: kinks: torch.fmax(x, y) at x = 1, y = 1
#
#    Where its two arguments are equal, ``fmax`` gave the whole gradient to the first one. On 2.14 each gets half, as with
#    ``maximum``. The same holds for ``fmin``.

# sphinx_gallery_start_ignore
for _tied in (torch.fmax, torch.fmin):
    _pair = torch.ones(2, requires_grad=True)
    _parts = torch.autograd.grad(_tied(_pair[0], _pair[1]), _pair)[0]
    assert _parts.tolist() == ([0.5, 0.5] if TORCH >= (2, 14) else [1, 0])
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **A distance of a point to itself.** Subtract all pairs of a batch, and the diagonal has the distance 0. Backward multiplies
# infinity from the root by 0 from the square. So the whole weight gets NaN:

torch.manual_seed(0)
model = torch.nn.Linear(2, 2)
out = model(torch.randn(3, 2))
squares = (out[:, None] - out).square().sum(-1)

losses = {
    "squares.sqrt()": squares.sqrt(),
    "squares.sqrt() + 1e-8": squares.sqrt() + 1e-8,
    "(squares + 1e-8).sqrt()": (squares + 1e-8).sqrt(),
    "vector_norm(...)": torch.linalg.vector_norm(out[:, None] - out, dim=-1),
}
for name, distances in losses.items():
    grad = torch.autograd.grad(distances.mean(), model.weight, retain_graph=True)[0]
    print(f"{name:<24} NaN in the gradient of the weight: {grad.isnan().any()}")

# sphinx_gallery_start_ignore
nan = [
    torch.autograd.grad(d.mean(), model.weight, retain_graph=True)[0].isnan()
    for d in losses.values()
]
assert nan[0].all() and nan[1].all() and not nan[2].any() and not nan[3].any()
assert all(d.isfinite().all() for d in losses.values())
assert not gradient(torch.linalg.vector_norm, [0.0, 0.0]).any()
_zeros = torch.zeros(2, requires_grad=True)
(_first,) = torch.autograd.grad(
    torch.linalg.vector_norm(_zeros), _zeros, create_graph=True
)
assert torch.autograd.grad(_first.sum(), _zeros)[0].isnan().all()
for _type, _small, _bad in (
    (torch.float32, 1e-8, False),
    (torch.float16, 1e-8, True),
    (torch.float16, 1e-4, False),
):
    _zeros = torch.zeros(2, dtype=_type, requires_grad=True)
    (_zeros.square().sum() + _small).sqrt().backward()
    assert _zeros.grad.isnan().any() == _bad
# sphinx_gallery_end_ignore

# %%
# A small number added *after* the root leaves the infinite slope where it is. Added *under* the root, it keeps the root
# away from 0. (In ``float16``, 1e-8 is rounded to 0. There, 1e-4 works.) ``vector_norm`` has its own formula, which gives 0
# for a vector of zeros. (Its second derivative is NaN there.)

# %%
# **A gradient check at a kink.** ``gradcheck`` compares the gradient with the slope between two points, one on each side. At
# the kink of ``relu`` that slope is 0.5, and the gradient is 0. So choose inputs away from kinks and ties.

at_kink = torch.zeros(1, dtype=torch.float64, requires_grad=True)
try:
    torch.autograd.gradcheck(torch.relu, at_kink)
except RuntimeError as error:
    message = str(error)
    print(f"{type(error).__name__}: {message}")

# sphinx_gallery_start_ignore
assert "Jacobian mismatch" in message and "0.5000" in message
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# :math:`f(x) = (e^x - 1) / x` is 0 divided by 0 at 0, but its limit there is 1, and the limit of its derivative is
# :math:`\frac{1}{2}`. Write it with two ``where`` so that value *and* gradient are right at 0. What is the gradient
# if the branch for 0 is the constant 1?
#
# .. solution::
#
# The gradient is 0, the derivative of a constant. It is not NaN, but it is wrong. The branch taken needs the right slope as
# well: near 0, :math:`f(x) \approx 1 + \frac{x}{2} + \frac{x^2}{6}`.


def f(x, near_zero):
    small = x.abs() < 1e-2
    inside = torch.where(small, 1.0, x)
    return torch.where(small, near_zero(x), torch.expm1(inside) / inside)


def series(x):
    return 1 + x / 2 + x * x / 6


for name, near_zero in (("1", torch.ones_like), ("series", series)):
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = f(x, near_zero)
    y.sum().backward()
    print(f"{name:<6} value at 0: {y[0].item()}   gradient at 0: {x.grad[0].item()}")
assert x.grad[0] == 0.5 and abs(x.grad[1] - 1) < 1e-5

# predict: gradient(lambda x: f(x, torch.ones_like), [0.0]) -- What is the gradient at
#   0, if the branch for 0 is the constant 1?

# sphinx_gallery_start_ignore
assert gradient(lambda x: f(x, torch.ones_like), [0.0]).item() == 0
assert f(torch.zeros(1), torch.ones_like) == f(torch.zeros(1), series) == 1
_near = torch.linspace(1e-3, 0.1, 200)
_true = (_near.double() * _near.double().exp() - _near.double().expm1()) / _near**2
assert (gradient(lambda x: f(x, series), _near.tolist()) - _true).abs().max() < 1e-4
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, where you write the derivative yourself.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`: how backward multiplies local derivatives.
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`: find the operation that made the NaN.
# - In PyTorch's reference: `Gradients for non-differentiable functions
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions>`__ and
#   `torch.amax <https://docs.pytorch.org/docs/stable/generated/torch.amax.html>`__, on ties.
