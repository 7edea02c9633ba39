r"""
Points without a derivative: relu at 0, ties in max, NaN from where
===================================================================

Many functions have points where no derivative exists, and autograd still has to return something there. This page
shows what it returns at kinks, at ties and at the edge of a domain, which rule it follows, and how a gradient becomes
NaN although every value is fine: the branch of ``torch.where`` that was not taken.
"""

# %%
# One function, three gradients
# -----------------------------
# Four ways to write :math:`\max(x, 0)`. The values are the same everywhere. At 0 the graph has a kink: slope 0 on the
# left, slope 1 on the right.

import matplotlib.pyplot as plt
import pandas as pd
import torch


def gradient(function, x):
    x = torch.tensor(x, requires_grad=True)
    return torch.autograd.grad(function(x).sum(), x)[0]


versions = {
    "torch.relu(x)": torch.relu,
    "torch.where(x > 0, x, 0)": lambda x: torch.where(x > 0, x, 0.0),
    "torch.maximum(x, 0)": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "x.clamp(min=0)": lambda x: x.clamp(min=0),
}
for name, function in versions.items():
    print(f"{name:<25} at -1, 0, 1: {gradient(function, [-1.0, 0.0, 1.0]).tolist()}")

# sphinx_gallery_start_ignore
_points = torch.linspace(-2, 2, 9)
for _name, _at_zero in zip(versions, (0, 0, 0.5, 1), strict=True):
    assert torch.equal(versions[_name](_points), torch.relu(_points))
    assert gradient(versions[_name], [-1.0, 0.0, 1.0]).tolist() == [0, _at_zero, 1]
    assert (torch.relu(_points) >= _at_zero * _points).all()
    _w = torch.zeros(1)
    for _ in range(200):
        _w -= 0.1 * gradient(lambda w, f=versions[_name]: (f(w) - 1) ** 2, _w.tolist())
    assert abs(_w.item() - (_at_zero > 0)) < 1e-3
# sphinx_gallery_end_ignore

# %%
# None of the three is wrong. Each is a *subgradient*: the line with that slope through the kink stays below the
# function. Away from the kink the choice makes no difference. A parameter that starts at 0 is where it does: from
# :math:`w = 0`, gradient descent on :math:`(f(w) - 1)^2` stays at 0 with ``relu``, and reaches 1 with ``maximum``.
#
# The same for two more functions, with the gradient that autograd returns at each kink:

cases = {
    "torch.relu(x)": (torch.relu, [0.0]),
    "torch.abs(x)": (torch.abs, [0.0]),
    "x.clamp(0, 1)": (lambda x: x.clamp(0, 1), [0.0, 1.0]),
}
x = torch.arange(-200, 201) / 100

# figure: Values above, gradients below, for relu, abs and clamp. The gradient jumps at each kink, and a dot marks
#   what autograd returns there: 0 for relu, 0 for abs, halfway between -1 and 1, and 1 at both edges of clamp.
figure, axes = plt.subplots(
    2, 3, figsize=(7, 3.8), sharex=True, sharey="row", layout="constrained"
)
for (name, (function, kinks)), (top, bottom) in zip(cases.items(), axes.T, strict=True):
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

# sphinx_gallery_start_ignore
assert [gradient(*case).sum().item() for case in cases.values()] == [0, 0, 2]
assert gradient(*cases["x.clamp(0, 1)"]).tolist() == [1, 1]
assert gradient(torch.abs, [-0.1, 0.1]).tolist() == [-1, 1]
# sphinx_gallery_end_ignore

# %%
# The rule
# --------
# PyTorch's notes on autograd say which derivative an operation should have at such a point. In short, the first case
# that applies counts:
#
# 1. If there is a derivative, it is used.
# 2. If the function is convex around the point, the subgradient with the smallest norm: 0 for ``relu`` and ``abs``.
# 3. If it is concave, the supergradient with the smallest norm.
# 4. Otherwise the limit of the gradients nearby. It may be infinite, and of several limits one is picked.
# 5. Outside the domain the result is arbitrary, often NaN.
#
# ``maximum`` treats its two arguments alike, and splits the gradient. ``clamp`` passes it on from edge to edge, both
# included: 1 is a subgradient at 0, but not the smallest. So read the rule as a preference, and measure where it
# matters.

# %%
# sqrt at 0, and zero times infinity
# ----------------------------------
# The slope of the square root grows without limit towards 0, so its gradient there is infinite. In a chain it meets
# the next factor. If that one is 0, the product is NaN:

rows = {}
for name, function in {
    "x.sqrt()": lambda x: x.sqrt(),
    "(x**2).sqrt()": lambda x: (x**2).sqrt(),
    "x.abs()": lambda x: x.abs(),
    "(x**2).sum().sqrt()": lambda x: (x**2).sum().sqrt(),
    "x.norm()": lambda x: x.norm(),
    "(x - 1).sqrt()": lambda x: (x - 1).sqrt(),
    "(x - 1).log()": lambda x: (x - 1).log(),
}.items():
    value, slope = function(torch.tensor([0.0])), gradient(function, [0.0])
    rows[name] = {"value": f"{value.item():g}", "gradient": f"{slope.item():g}"}

# sphinx_gallery_start_ignore
assert [(row["value"], row["gradient"]) for row in rows.values()] == [
    *[("0", "inf"), ("0", "nan"), ("0", "0"), ("0", "nan"), ("0", "0")],
    *[("nan", "nan"), ("nan", "-1")],
]
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(index=None, columns="at x = 0")

# %%
# ``(x**2).sqrt()`` is ``x.abs()``, but autograd sees two steps: infinity from the root, times 0 from the square.
# ``norm`` is one operation with a rule of its own, and returns the subgradient 0. Use it for lengths and distances.
# The last two rows are outside the domain: a NaN for the root, an innocent number for the logarithm.
#
# Ties in max
# -----------
# Where two elements share the maximum, ``amax`` and ``max()`` split the gradient evenly, which is the subgradient
# with the smallest norm. Operations that pick an index send all of it there:

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
for _pick in (
    lambda x: x.max(0).values,
    lambda x: x.topk(1).values,
    lambda x: torch.max_pool1d(x[None], 3),
):
    assert sorted(gradient(_pick, [1.0, 3.0, 3.0]).tolist()) == [0, 0, 1]
# sphinx_gallery_end_ignore

# %%
# So ``x.max()`` and ``x.max(0).values`` are the same number with different gradients.
#
# torch.where, and the branch not taken
# -------------------------------------
# ``torch.where`` computes both branches and then picks. The value is fine here: ``x`` is 0, so the branch with the
# root is not taken.

x = torch.tensor(0.0, requires_grad=True)
dangerous = x.sqrt()
y = torch.where(x > 0, dangerous, x)

# graph: y -- Two paths from x to y: inf times 0 along the branch not taken, 1 along the other

print("y:", y.item())

# %%
# Backward follows both paths. The real gradient goes into the branch taken, and 0 goes into the other. There it is
# multiplied by the local derivative of the root, which is infinite, and the NaN is added to the good gradient:

dangerous.retain_grad()
y.backward()

print("dangerous.grad:", dangerous.grad.item(), "  x.grad:", x.grad.item())
assert y == 0 and dangerous.grad == 0 and x.grad.isnan()

# sphinx_gallery_start_ignore
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        with torch.autograd.detect_anomaly():
            torch.where(x > 0, x.sqrt(), x).backward()
    except RuntimeError as error:
        assert "Function 'SqrtBackward0' returned nan values" in str(error)
# sphinx_gallery_end_ignore

# %%
# Anomaly mode names the node where the NaN begins, ``SqrtBackward0``.
#
# The fix is a second ``where``, *before* the dangerous operation. It gives the branch not taken a harmless input, so
# that its derivative is finite, and 0 times it is 0:

for name, function in {
    "one where": lambda x: torch.where(x > 0, x.sqrt(), x),
    "two where": lambda x: torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), x),
}.items():
    x = torch.tensor([-1.0, 0.0, 4.0], requires_grad=True)
    y = function(x)
    y.sum().backward()
    print(f"{name}: values {y.tolist()}   gradient {x.grad.tolist()}")
assert x.grad.tolist() == [1, 1, 0.25]

# sphinx_gallery_start_ignore
_single = gradient(lambda x: torch.where(x > 0, x.sqrt(), x), [-1.0, 0.0, 4.0])
assert _single[:2].isnan().all() and _single[2] == 0.25
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **The small number in the wrong place.** Added to the root, it changes nothing about the infinite slope. Added under
# the root, it keeps the root away from 0.

for name, function in {
    "(x**2).sum().sqrt() + 1e-8": lambda x: (x**2).sum().sqrt() + 1e-8,
    "((x**2).sum() + 1e-8).sqrt()": lambda x: ((x**2).sum() + 1e-8).sqrt(),
}.items():
    print(f"{name:<29} gradient at 0: {gradient(function, [0.0, 0.0]).tolist()}")
assert gradient(function, [0.0, 0.0]).tolist() == [0, 0]

# %%
# **Hoping that clipping helps.** The norm over all gradients is NaN as soon as one of them is. Divided by it, the
# good ones are lost too. ``error_if_nonfinite=True`` makes it an error instead.

good = torch.tensor([1.0, 2.0], requires_grad=True)
bad = torch.zeros(2, requires_grad=True)
((good**2).sum() + (bad**2).sum().sqrt()).backward()
print("before:", good.grad.tolist(), bad.grad.tolist())
torch.nn.utils.clip_grad_norm_([good, bad], 1.0)
print("after: ", good.grad.tolist(), bad.grad.tolist())
assert good.grad.isnan().all()

# sphinx_gallery_start_ignore
assert bad.grad.isnan().all()
try:
    torch.nn.utils.clip_grad_norm_([good, bad], 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    assert "is non-finite, so it cannot be clipped" in str(error)
# sphinx_gallery_end_ignore

# %%
# **Testing at the kink.** ``gradcheck`` compares with the slope between two points on either side. At the kink of
# ``relu`` that is the mean of 0 and 1, and no fault of the gradient. Choose inputs away from kinks and ties.

at_kink = torch.zeros(1, dtype=torch.float64, requires_grad=True)
try:
    torch.autograd.gradcheck(torch.relu, at_kink)
except RuntimeError as error:
    print(f"{type(error).__name__}: {error}")
    assert "Jacobian mismatch" in str(error) and "0.5000" in str(error)

# %%
# Exercise
# --------
# :math:`f(x) = (e^x - 1) / x` is 0 divided by 0 at 0, but its limit there is 1, and the limit of its derivative is
# :math:`\frac{1}{2}`. Write it with two ``where`` so that value *and* gradient are right at 0. What is the gradient
# if the branch for 0 is the constant 1?
#
# .. solution::
#
# A constant has the derivative 0, so the NaN is gone and the gradient is wrong. The branch taken needs the right
# slope as well: near 0, :math:`f(x) \approx 1 + \frac{x}{2}`.


def f(x, near_zero):
    small = x.abs() < 1e-4
    inside = torch.where(small, 1.0, x)
    return torch.where(small, near_zero(x), torch.expm1(inside) / inside)


for name, near_zero in (("1", torch.ones_like), ("1 + x/2", lambda x: 1 + x / 2)):
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = f(x, near_zero)
    y.sum().backward()
    print(f"{name:<8} value at 0: {y[0].item()}   gradient at 0: {x.grad[0].item()}")
assert x.grad[0] == 0.5 and abs(x.grad[1] - 1) < 1e-5

# sphinx_gallery_start_ignore
assert gradient(lambda x: f(x, torch.ones_like), [0.0]).item() == 0
assert f(torch.zeros(1), torch.ones_like) == f(torch.zeros(1), lambda x: 1 + x / 2) == 1
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_complex_gradients.py`, gradients of complex tensors.
# - Next: :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`, the memory of ``.grad`` itself.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, where you write the derivative yourself.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`: how backward multiplies local derivatives.
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`: find the operation that made the NaN.
# - In PyTorch's reference: `Gradients for non-differentiable functions
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions>`__ and
#   `torch.amax <https://docs.pytorch.org/docs/stable/generated/torch.amax.html>`__, on ties.
