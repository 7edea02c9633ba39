r"""
gradcheck: test your backward against finite differences
========================================================

A derivative that you write yourself can be wrong, and autograd uses it all the same. ``torch.autograd.gradcheck``
measures the derivative a second time, from differences of function values, and compares. This page shows what it
computes, why it wants ``float64``, what a caught mistake looks like, and what it cannot see.
"""

# %%
# A Function, and its check
# -------------------------
# The sigmoid and its derivative:
#
# .. math::
#
#    s(x) = \frac{1}{1 + e^{-x}}, \qquad s'(x) = s(x) \, (1 - s(x))

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch.autograd import gradcheck


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return 1 / (1 + torch.exp(-x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        return grad_output * s * (1 - s)


# %%
# ``gradcheck`` takes a function and its inputs. It returns ``True``, or raises an error that says what is wrong.

x = torch.tensor([-2.0, 0.5], dtype=torch.float64, requires_grad=True)

print("gradcheck:", gradcheck(Sigmoid.apply, x))

# sphinx_gallery_start_ignore
assert gradcheck(Sigmoid.apply, x) is True
# sphinx_gallery_end_ignore

# %%
# What it computes
# ----------------
# For each input number it takes a step ``eps`` to both sides. The slope between the two results is the *central
# difference*, one column of the Jacobian. ``backward`` gives the same Jacobian row by row. The two have to agree
# within ``atol + rtol * |numerical|``. The defaults are ``eps=1e-6``, ``atol=1e-5`` and ``rtol=1e-3``.
#
# Here each output depends on one input only, so all entries can take the step at once:


def central_difference(f, x, eps):
    return (f(x + eps) - f(x - eps)) / (2 * eps)


point = x.detach()
numerical = central_difference(torch.sigmoid, point, eps=1e-6)
analytical = torch.autograd.grad(Sigmoid.apply(x).sum(), x)[0]
allowed = 1e-5 + 1e-3 * numerical.abs()

for at, n, a, most in zip(point, numerical, analytical, allowed, strict=True):
    print(f"x {at:4.1f}   numerical {n:.6f}   analytical {a:.6f}   allowed {most:.6f}")
assert ((numerical - analytical).abs() <= allowed).all()

# %%
# Why float64: rounding against truncation
# ----------------------------------------
# A smaller step does not always give a better slope. Take the mean error of the central difference at 81 points, for
# steps of many sizes, in both precisions:

points = torch.linspace(-4, 4, 81)
exact = torch.sigmoid(points.double()) * torch.sigmoid(-points.double())


def mean_error(dtype, eps):
    slope = central_difference(torch.sigmoid, points.to(dtype), eps)
    return (slope - exact).abs().mean().item()


steps = {torch.float32: np.logspace(-7, 0, 36), torch.float64: np.logspace(-11, 0, 56)}
errors = {d: np.array([mean_error(d, eps) for eps in steps[d]]) for d in steps}
tolerance = (1e-5 + 1e-3 * exact).mean().item()

# figure: Mean error of the central difference against the step, on logarithmic axes. For both precisions the error
#   first falls with a larger step, with slope -1, then rises with slope 2. Both rising branches are the same line.
#   The lowest error of float32 is near a step of 0.01, that of float64 near 0.00001, and it is far lower.
_, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
styles = {torch.float64: ("#2563eb", "s-"), torch.float32: ("#c2410c", "o")}
for dtype, (color, style) in styles.items():
    name = str(dtype).removeprefix("torch.")
    ax.loglog(steps[dtype], errors[dtype], style, color=color, markersize=3, label=name)
ax.axhline(tolerance, color="#64748b", linestyle="--", label="allowed by gradcheck")
ax.axvline(1e-6, color="#64748b", linestyle=":", label="default step, 1e-6")
ax.set(xlabel="step eps", ylabel="mean error of the slope")
ax.set_title("Small steps suffer from rounding, large ones from truncation")
ax.legend(frameon=False, fontsize=8)

# sphinx_gallery_start_ignore
assert 2e-3 < steps[torch.float32][errors[torch.float32].argmin()] < 5e-2
assert 1e-6 < steps[torch.float64][errors[torch.float64].argmin()] < 5e-5
assert errors[torch.float64].min() < 1e-3 * errors[torch.float32].min()
_big = errors[torch.float32][steps[torch.float32] > 0.1]
assert np.allclose(_big, errors[torch.float64][steps[torch.float64] > 0.1], rtol=0.02)
# sphinx_gallery_end_ignore

# %%
# Each curve is the sum of two errors.
#
# *Truncation*: the function is not a straight line between the two points. Taylor's series gives an error of
# :math:`\frac{1}{6} |s'''| \, \varepsilon^2`. Ten times the step, a hundred times the error: slope 2. It is the same
# in both precisions.
#
# *Rounding*: function values and inputs are rounded, by about :math:`u = 6 \cdot 10^{-8}` of their size in
# ``float32`` and :math:`u = 1.1 \cdot 10^{-16}` in ``float64``. The division by :math:`2 \varepsilon` makes the
# rounding large: slope -1. Straight lines fitted to the two branches:


def fitted_slope(dtype, low, high):
    chosen = (steps[dtype] > low) & (steps[dtype] < high)
    logs = np.log10(steps[dtype][chosen]), np.log10(errors[dtype][chosen])
    return np.polyfit(*logs, deg=1)[0]


slopes = {
    "float32, rounding": fitted_slope(torch.float32, 1e-6, 1e-3),
    "float32, truncation": fitted_slope(torch.float32, 5e-2, 0.5),
    "float64, rounding": fitted_slope(torch.float64, 1e-10, 1e-6),
    "float64, truncation": fitted_slope(torch.float64, 1e-4, 0.5),
}
for name, slope in slopes.items():
    print(f"{name:<20} slope {slope:5.2f}")
    assert abs(slope - (-1 if "rounding" in name else 2)) < 0.15

# sphinx_gallery_start_ignore
_u = {d: torch.finfo(d).eps / 2 for d in steps}
assert 5.9e-8 < _u[torch.float32] < 6.1e-8 and 1.1e-16 < _u[torch.float64] < 1.12e-16
_default = {d: mean_error(d, 1e-6) for d in steps}
assert _default[torch.float32] > 50 * tolerance
assert _default[torch.float64] < 1e-4 * tolerance
# sphinx_gallery_end_ignore

# %%
# At the default step, the error of ``float64`` is more than 10,000 times below what ``gradcheck`` allows. That of
# ``float32`` is more than 50 times above it. So ``gradcheck`` warns before it starts:

single = x.detach().float().requires_grad_()

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    passed = gradcheck(Sigmoid.apply, single, raise_exception=False)

print("passed:", passed)
warning = f"{caught[0].category.__name__}: {caught[0].message}"
print(textwrap.fill(warning, 88))

# sphinx_gallery_start_ignore
assert passed is False and len(caught) == 1
assert "is not a double precision floating point" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# How often a right gradient fails
# --------------------------------
# "Likely fail" can be measured. The gradient is right, so each failure below is a false alarm. 200 seeds give 200
# inputs of four numbers each. With ``raise_exception=False`` a failure is the answer ``False``.


generator = torch.Generator()
samples = [torch.randn(4, generator=generator.manual_seed(seed)) for seed in range(200)]


def verdicts(dtype, eps):
    inputs = [sample.to(dtype, copy=True).requires_grad_() for sample in samples]
    options = {"eps": eps, "raise_exception": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([gradcheck(Sigmoid.apply, x, **options) for x in inputs])


runs = [(torch.float32, eps) for eps in (1e-4, 1e-3)]
results = {run: verdicts(*run) for run in [*runs, (torch.float64, 1e-6)]}
rates = [
    [str(dtype).removeprefix("torch."), f"{eps:.0e}", f"{100 * passed.mean():.1f} %"]
    for (dtype, eps), passed in results.items()
]
# sphinx_gallery_start_ignore
_means = [passed.mean() for passed in results.values()]
assert 0.4 < _means[0] < 0.67
assert _means[1] > 0.97 and _means[2] == 1
# sphinx_gallery_end_ignore
pd.DataFrame(rates, columns=["dtype", "eps", "passed"]).set_index("eps").rename_axis(
    index=None, columns="eps"
)

# %%
# The rows follow the figure. In ``float32`` with a step of 1e-4, the error is about as large as the tolerance, and
# about half of the seeds pass: the verdict is chance. The larger step works here, but which step is good depends on
# the function. In ``float64`` the default step works.
#
# The chance grows worse with the size of the input, because *every* entry has to pass. Our own central difference in
# ``float32`` tells the entries apart:

values = torch.stack(samples)
numerical = central_difference(torch.sigmoid, values, 1e-4)
sigmoid = torch.sigmoid(values)
good = (sigmoid * (1 - sigmoid) - numerical).abs() <= 1e-5 + 1e-3 * numerical.abs()
entries, vectors = good.float().mean().item(), good.all(dim=1).float().mean().item()

print(f"entries that pass:            {entries:.3f}")
print(f"all four, if independent:     {entries**4:.3f}")
print(f"vectors of four that pass:    {vectors:.3f}")
print(f"passed by gradcheck itself:   {results[torch.float32, 1e-4].mean():.3f}")

# sphinx_gallery_start_ignore
assert 0.75 < entries < 0.95 and abs(entries**4 - vectors) < 0.08
assert abs(vectors - results[torch.float32, 1e-4].mean()) < 0.05
# sphinx_gallery_end_ignore

# %%
# A wrong backward is caught
# --------------------------
# Two mistakes. The first mixes up what was saved: the formula wants the output and gets the input. The second returns
# the local derivative and forgets the gradient that arrives.


class SavesInput(Sigmoid):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


class ForgetsGradOutput(Sigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        return s * (1 - s)


# %%
# The message of the first one, as it is:

try:
    gradcheck(SavesInput.apply, x)
except RuntimeError as error:
    print(f"{type(error).__name__}: {error}")
    assert "Jacobian mismatch for output 0 with respect to input 0" in str(error)

# %%
# Row *i* and column *j* hold the derivative of output *j* with respect to input *i*: the transpose of the usual
# Jacobian. The numerical one is the one to believe. Zeros in the same places mean that the structure is right and the
# formula is wrong.
#
# The second mistake does not show in the Jacobian of a single number: there, the gradient that arrives is 1.
# ``gradcheck`` sends a 0 as well, and what comes back has to be 0.

one = x.detach()[:1].requires_grad_()

try:
    gradcheck(ForgetsGradOutput.apply, one)
except RuntimeError as error:
    print(f"{type(error).__name__}: {error}")
    assert "backward not multiplied by grad_output" in str(error)

# sphinx_gallery_start_ignore
_wide = torch.ones(3, 2, dtype=torch.float64)
try:
    gradcheck(lambda x: SavesInput.apply(_wide @ x), x)
except RuntimeError as error:
    _rows = str(error).split("analytical")[0].count("[") - 1
    assert _rows == 2  # two inputs, three outputs
# sphinx_gallery_end_ignore

# %%
# fast_mode
# ---------
# The full Jacobian takes two evaluations for each input number. ``fast_mode=True`` takes one fixed random direction for the
# inputs and one for the outputs, and compares a single number. Its own generator draws them, so they do not depend on
# your seed. To see the price, count the calls, for 100 numbers:


class LastTooLarge(Sigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        gradient = Sigmoid.backward(ctx, grad_output)
        gradient[-1] *= 1.2
        return gradient


def count_calls(function, fast_mode):
    calls = []
    x = torch.linspace(-2, 2, 100, dtype=torch.float64, requires_grad=True)
    options = {"fast_mode": fast_mode, "raise_exception": False}
    passed = gradcheck(lambda x: calls.append(1) or function.apply(x), x, **options)
    return len(calls), passed


found = {}
for function in (Sigmoid, SavesInput, LastTooLarge):
    for fast_mode in (False, True):
        calls, passed = count_calls(function, fast_mode)
        verdict = "passed" if passed else "caught"
        found[function.__name__, fast_mode] = calls, verdict
        mode = f"fast_mode={fast_mode}"
        print(f"{function.__name__:<13} {mode:<16} {calls:>3} calls   {verdict}")
assert found["LastTooLarge", True][1] == "passed"  # one wrong entry of 100

# sphinx_gallery_start_ignore
assert [outcome for _, outcome in found.values()] == [
    *["passed", "passed", "caught", "caught", "caught", "passed"]
]
assert found["Sigmoid", False][0] == 202 and found["Sigmoid", True][0] == 4
assert found["SavesInput", True][0] > 200
_met = []
for _seed in range(10):
    torch.manual_seed(_seed)
    _x = torch.linspace(-2, 2, 100, dtype=torch.float64, requires_grad=True)
    _probes = []

    def _f(x, probes=_probes):
        probes.append(x.detach().clone())
        return LastTooLarge.apply(x)

    assert gradcheck(_f, _x, fast_mode=True)
    _met.append(torch.stack(_probes))
assert all(torch.equal(probes, _met[0]) for probes in _met) and _met[0].std(0).max() > 0
# sphinx_gallery_end_ignore

# %%
# Four calls against 202. A formula that is wrong everywhere is found in both modes. (The fast mode then computes the
# full Jacobian after all, to put it into its message.) One wrong entry among many is averaged away in that direction,
# and to run the check again does not help: the direction is the same each time. So take the fast mode for large inputs,
# and test the corner cases with small inputs and the full Jacobian.

# %%
# What people get wrong
# ---------------------
# **Loosening the tolerance until it passes.** With ``float32`` inputs that is tempting, and it needs a wide
# tolerance. But it lets a wrong gradient pass, here one whose last entry is 20 % too large:

for function, inputs in ((Sigmoid, single), (LastTooLarge, x)):
    for atol in (1e-5, 5e-2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            passed = gradcheck(function.apply, inputs, atol=atol, raise_exception=False)
        verdict = "passed" if passed else "caught"
        print(f"{function.__name__:<12} {inputs.dtype}   atol={atol:g}: {verdict}")
assert passed and function is LastTooLarge

# sphinx_gallery_start_ignore
assert not gradcheck(LastTooLarge.apply, x, raise_exception=False)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert not gradcheck(Sigmoid.apply, single, raise_exception=False)
    assert gradcheck(Sigmoid.apply, single, atol=5e-2)
# sphinx_gallery_end_ignore

# %%
# Convert the inputs to ``float64`` instead, and a module with ``module.double()``.
#
# **Inputs that never reach the mistake.** A check is as good as its points. Here the branch for negative numbers is
# wrong:


class LeakyRelu(SavesInput):
    @staticmethod
    def forward(x):
        return torch.where(x > 0, x, 0.1 * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, 0.2 * grad_output)


for points in ([0.5, 2.0], [-1.0, 2.0]):
    inputs = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    passed = gradcheck(LeakyRelu.apply, inputs, raise_exception=False)
    print(f"{points}: {'passed' if passed else 'caught'}")
assert not passed

# sphinx_gallery_start_ignore
assert gradcheck(LeakyRelu.apply, inputs.detach().abs().requires_grad_())
# sphinx_gallery_end_ignore

# %%
# Take numbers of both signs, and some from every branch. Avoid the kink itself:
# :ref:`there is no derivative to compare with <sphx_glr_gallery_differentiation_points_without_a_derivative.py>`.
#
# **A forward that draws random numbers.** The two evaluations then use different draws, and their difference is
# divided by a tiny step. Numbers in the size of ``1 / eps`` are the sign of it.

torch.manual_seed(1)
try:
    gradcheck(torch.nn.functional.dropout, x)
except RuntimeError as error:
    message = str(error)
print(message)
assert "Jacobian mismatch" in message

# sphinx_gallery_start_ignore
import re

assert max(map(float, re.findall(r"\d+\.\d+(?:e\+\d+)?", message))) > 1e5
assert gradcheck(torch.nn.Dropout().eval(), x)
_mask = torch.tensor([0.0, 2.0], dtype=torch.float64)
assert gradcheck(lambda x: x * _mask, x)
# sphinx_gallery_end_ignore

# %%
# Draw the numbers before the check and keep them fixed, or put the module into ``eval()``.
#
# Exercise
# --------
# The *forward difference* :math:`(f(x + \varepsilon) - f(x)) / \varepsilon` needs only one extra evaluation. Which
# slopes does its error have in the figure? And what is the smallest error in ``float64``, compared with the central
# difference?
#
# .. solution::
#
# Rounding has slope -1 again. The truncation error is :math:`\frac{1}{2} |s''| \, \varepsilon`, slope 1: the terms in
# :math:`\varepsilon` cancel only in a symmetric difference. So the best step is smaller, where rounding is larger,
# and the best error is worse.


def forward_error(eps):
    x = torch.linspace(-4, 4, 81).double()
    slope = (torch.sigmoid(x + eps) - torch.sigmoid(x)) / eps
    return (slope - exact).abs().mean().item()


eps = steps[torch.float64]
forward = np.array([forward_error(step) for step in eps])
central = errors[torch.float64]
rising = (eps > 1e-6) & (eps < 0.1)
slope = np.polyfit(np.log10(eps[rising]), np.log10(forward[rising]), deg=1)[0]

print(f"slope of the truncation error: {slope:.2f}")
for name, curve in (("forward", forward), ("central", central)):
    print(
        f"{name} difference: best error {curve.min():.0e} at {eps[curve.argmin()]:.0e}"
    )
assert abs(slope - 1) < 0.1 and forward.min() > 10 * central.min()

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_functions_context_methods.py`, what ``ctx`` can do.
# - Next: :ref:`sphx_glr_gallery_functions_double_backward.py`, with ``gradgradcheck`` for second derivatives.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write a Function.
# - In PyTorch's reference: `gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__ and `Gradcheck
#   mechanics <https://docs.pytorch.org/docs/stable/notes/gradcheck.html>`__.
