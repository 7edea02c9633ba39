r"""
gradcheck: test a custom backward
=================================

.. index::
   ! single: Jacobian mismatch for output 0 with respect to input 0
   ! single: Backward is not reentrant
   ! single: gradcheck fails
   ! single: analytical and numerical gradients differ
   ! single: gradcheck and float32

.. in-short::

   ``torch.autograd.gradcheck(Sigmoid.apply, x)`` compares your ``backward`` with differences of function values. It returns
   ``True`` or raises. Use ``float64`` inputs, a few numbers from each branch, and keep away from kinks. It tests only the
   points that you pass in, and first derivatives only: for the second, use :ref:`gradgradcheck
   <sphx_glr_gallery_functions_double_backward.py>`.
"""

# %%
# The problem: a wrong formula raises no error
# --------------------------------------------
# The derivative of the sigmoid :math:`s` is :math:`s \, (1 - s)`. The Function below saves its input, but the formula needs the
# output. Autograd uses the wrong result anyway. The last line of output is the slope between two nearby points:

import textwrap
import warnings

import numpy as np
import torch
from torch.autograd import gradcheck


def central_difference(f, x, eps=1e-6):
    return (f(x + eps) - f(x - eps)) / (2 * eps)


class WrongSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return 1 / (1 + torch.exp(-x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        return grad_output * s * (1 - s)


x = torch.tensor([-2.0, 0.5], dtype=torch.float64, requires_grad=True)
(gradient,) = torch.autograd.grad(WrongSigmoid.apply(x).sum(), x)
print("gradient:", gradient.tolist())
print("slope:   ", central_difference(WrongSigmoid.apply, x.detach()).tolist())

# sphinx_gallery_start_ignore
_slope = central_difference(WrongSigmoid.apply, x.detach())
assert ((gradient - _slope).abs() > 1e-5 + 1e-3 * _slope.abs()).all()
# sphinx_gallery_end_ignore

# %%
# ``gradcheck`` moves each number of an input that requires grad by ``eps=1e-6`` to both sides. The slope between the two values
# is the numerical derivative. Your gradient may differ by ``atol + rtol * |numerical|``, with ``atol=1e-5`` and ``rtol=1e-3``.

# %%
# Jacobian mismatch for output 0 with respect to input 0
# ------------------------------------------------------
# ``gradcheck`` compares gradient and slope for each pair of an input and an output number, and raises if they do not agree:

try:
    gradcheck(WrongSigmoid.apply, x)
except RuntimeError as error:
    message = str(error)
    print(f"{type(error).__name__}: {message}")

# sphinx_gallery_start_ignore
assert "Jacobian mismatch for output 0 with respect to input 0" in message
_printed = [part.count("0.0000") for part in message.split("analytical")]
assert _printed == [2, 2]
_wide = torch.ones(3, 2, dtype=torch.float64)
try:
    gradcheck(lambda x: WrongSigmoid.apply(_wide @ x), x)
except RuntimeError as error:
    _rows = str(error).split("analytical")[0].count("[") - 1
assert _rows == 2  # two inputs, three outputs
# sphinx_gallery_end_ignore

# %%
# A *Jacobian* is the table of all these slopes: row *i*, column *j* is the derivative of output *j* with respect to input *i*.
# The numerical one is right. The formula is wrong. The fix:


class Sigmoid(WrongSigmoid):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


print("gradcheck:", gradcheck(Sigmoid.apply, x))

# sphinx_gallery_start_ignore
assert gradcheck(Sigmoid.apply, x) is True
assert torch.allclose(_slope, torch.sigmoid(x) * torch.sigmoid(-x))


class _ForgetsGradOutput(Sigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        (s,) = ctx.saved_tensors
        return s * (1 - s)


try:
    gradcheck(_ForgetsGradOutput.apply, x.detach()[:1].requires_grad_())
except RuntimeError as error:
    message = str(error)
assert "backward not multiplied by grad_output" in message


def _said(function, *inputs, **options):
    try:
        gradcheck(function, inputs, **options)
    except RuntimeError as error:
        return str(error)
    return ""


assert _said(lambda v: (v.float() ** 3).double(), x).startswith("Jacobian mismatch")
assert _said(lambda v: v * v.detach(), x).startswith("Jacobian mismatch")
_factor = x.detach().clone()
assert not _said(lambda v: v * _factor, x)
_kink = torch.zeros(1, dtype=torch.float64, requires_grad=True)
_half = _said(torch.relu, _kink).partition("analytical")
assert "0.5000" in _half[0] and "[[0.]]" in _half[2]


class _Noisy(Sigmoid):
    size, calls = 1e-4, 0

    @staticmethod
    def backward(ctx, grad_output):
        _Noisy.calls += 1  # each call differs, and random numbers may lie too close
        return Sigmoid.backward(ctx, grad_output) * (1 + _Noisy.size * _Noisy.calls)


assert _said(_Noisy.apply, x, nondet_tol=1e-6).startswith("Backward is not reentrant")
_Noisy.size = 1e-10
assert _said(_Noisy.apply, x).startswith("Backward is not reentrant")
assert not _said(_Noisy.apply, x, nondet_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The message names the first pair of an output and an input that differs. Look at *how* they differ:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - you see
#      - cause
#    * - the same factor or sign in all numbers, or a transposed matrix
#      - the formula
#    * - a warning about double precision, or a function that converts to ``float32`` on the way
#      - precision: see below
#    * - huge numbers
#      - ``forward`` draws random numbers
#    * - numbers of ``numerical`` that are half of the others, at one point
#      - a kink, as of ``relu`` at 0
#    * - a part that is missing in ``analytical``
#      - ``detach()``. If it is on purpose, give ``gradcheck`` a function that gets this part from outside.
#    * - *backward not multiplied by grad_output*
#      - ``backward`` got zeros and returned something else
#    * - *Backward is not reentrant*
#      - two runs of ``backward`` differ. If it is rounding, as in sums on a GPU, pass ``nondet_tol=1e-6``.

# %%
# Why float64: rounding against truncation
# ----------------------------------------
# The smallest step is not the best. With a large step, the slope of the line through the two points differs from that of the
# curve (*truncation*). With a small step, a rounding error is divided by a tiny number.
#
# ``mean_error`` compares the slope at 81 points with the formula:

points = torch.linspace(-4, 4, 81)
exact = torch.sigmoid(points.double()) * torch.sigmoid(-points.double())


def mean_error(dtype, eps):
    slope = central_difference(torch.sigmoid, points.to(dtype), eps)
    return (slope - exact).abs().mean().item()


# %%
# .. how-measured:: This code measures the error for steps of many sizes, and draws it.

import matplotlib.pyplot as plt

steps = {torch.float32: np.logspace(-7, 0, 36), torch.float64: np.logspace(-11, 0, 56)}
errors = {d: np.array([mean_error(d, eps) for eps in steps[d]]) for d in steps}
tolerance = (1e-5 + 1e-3 * exact).mean().item()


def draw_error_over_step():
    _, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    styles = {torch.float64: ("#2563eb", "s-"), torch.float32: ("#c2410c", "o")}
    for dtype, (color, style) in styles.items():
        name = str(dtype).removeprefix("torch.")
        ax.loglog(
            steps[dtype], errors[dtype], style, color=color, markersize=3, label=name
        )
    ax.axhline(tolerance, color="#64748b", ls="--", label="allowed, on average")
    ax.axvline(1e-6, color="#64748b", ls=":", label="default step, 1e-6")
    ax.set(xlabel="step eps", ylabel="mean error of the slope")
    ax.set_title("Small steps suffer from rounding, large ones from truncation")
    ax.legend(frameon=False, fontsize=8)


# %%
# Look at the dotted line, the default step:

draw_error_over_step()

# figure: Mean error of the central difference against the step, on logarithmic axes. For both precisions the error
#   first falls with a larger step, with slope -1, then rises with slope 2. Both rising branches are the same line.
#   The lowest error of float32 is near a step of 0.01, that of float64 near 0.00001, and it is far lower.

# sphinx_gallery_start_ignore
assert 2e-3 < steps[torch.float32][errors[torch.float32].argmin()] < 5e-2
assert 1e-6 < steps[torch.float64][errors[torch.float64].argmin()] < 5e-5
assert errors[torch.float64].min() < 1e-3 * errors[torch.float32].min()
_big = errors[torch.float32][steps[torch.float32] > 0.1]
assert np.allclose(_big, errors[torch.float64][steps[torch.float64] > 0.1], rtol=0.02)
assert mean_error(torch.float32, 1e-6) > 50 * tolerance
assert mean_error(torch.float64, 1e-6) < 1e-4 * tolerance
_below = steps[torch.float32][errors[torch.float32] < tolerance]
assert 0.5e-4 < _below.min() < 3e-4 and 0.05 < _below.max() < 0.3
_between = (steps[torch.float32] > 2e-4) & (steps[torch.float32] < 0.1)
assert (errors[torch.float32][_between] < tolerance).all()


def _fitted(dtype, low, high):
    chosen = (steps[dtype] > low) & (steps[dtype] < high)
    logs = np.log10(steps[dtype][chosen]), np.log10(errors[dtype][chosen])
    return np.polyfit(*logs, deg=1)[0]


assert abs(_fitted(torch.float32, 1e-6, 1e-3) + 1) < 0.15
assert abs(_fitted(torch.float64, 1e-10, 1e-6) + 1) < 0.15
assert abs(_fitted(torch.float32, 5e-2, 0.5) - 2) < 0.15
assert abs(_fitted(torch.float64, 1e-4, 0.5) - 2) < 0.15
_slope = central_difference(torch.sigmoid, points, 3e-4)
assert mean_error(torch.float32, 3e-4) < tolerance  # and yet some entry is too far
assert ((_slope - exact).abs() > 1e-5 + 1e-3 * exact).any()
# sphinx_gallery_end_ignore

# %%
# At the default step, the mean error of ``float64`` is far below what ``gradcheck`` allows, and that of ``float32`` is more
# than 50 times above it.

# %%
# ``fast_mode`` for large inputs
# ------------------------------
# The full check evaluates a real function twice for each number that it moves. ``fast_mode=True`` takes one fixed random
# direction for an input and one for an output, and compares a single number for the two.
#
# .. how-measured:: This code counts how often gradcheck calls the function, for an input of 100 numbers.


import pandas as pd


def count_calls(function, fast_mode):
    calls = []
    x = torch.linspace(-2, 2, 100, dtype=torch.float64, requires_grad=True)
    options = {"fast_mode": fast_mode, "raise_exception": False}
    passed = gradcheck(lambda x: calls.append(1) or function.apply(x), x, **options)
    return f"{'passed' if passed else 'caught'}, {len(calls)} calls"


def tabulate_calls(*functions):
    modes = {f"fast_mode={fast}": fast for fast in (False, True)}
    rows = {
        f.__name__: {name: count_calls(f, fast) for name, fast in modes.items()}
        for f in functions
    }
    return pd.DataFrame(rows).T


# %%
# The last entry of ``LastTooLarge`` is 20 % too large, one of 100:


class LastTooLarge(Sigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        gradient = Sigmoid.backward(ctx, grad_output)
        gradient[-1] *= 1.2
        return gradient


# sphinx_gallery_start_ignore
table = tabulate_calls(Sigmoid, WrongSigmoid, LastTooLarge)
assert table.iloc[0].tolist() == ["passed, 202 calls", "passed, 4 calls"]
_calls, _still = [], torch.ones(7, dtype=torch.float64)  # requires no grad: not moved
gradcheck(lambda x, still: _calls.append(1) or x * still[0], (x, _still))
assert len(_calls) == 2 * len(x) + 2
assert [text.split(",")[0] for text in table["fast_mode=False"]] == [
    "passed",
    "caught",
    "caught",
]
assert [text.split(",")[0] for text in table["fast_mode=True"]] == [
    "passed",
    "caught",
    "passed",
]
assert int(table.iloc[1, 1].split()[1]) > 200
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
assert all(torch.equal(probes, _met[0]) for probes in _met)
assert _met[0].std(0).max() > 0
# sphinx_gallery_end_ignore
tabulate_calls(Sigmoid, WrongSigmoid, LastTooLarge)

# %%
# The single number of the fast mode is a weighted sum over all entries. In that sum, the one wrong entry of ``LastTooLarge`` is
# too small to see, and the direction is the same each time. So test corner cases with small inputs and the full check.

# %%
# Options: what the default does not test
# ---------------------------------------
# ``Sigmoid`` and ``SkipsZeros`` pass by default, but fail in forward mode or under ``vmap``. The other two are good enough for
# training, and fail by default:

from torch.autograd.gradcheck import GradcheckError


class SkipsZeros(Sigmoid):  # a branch on numbers: fails under vmap
    @staticmethod
    def backward(ctx, grad_output):
        return Sigmoid.backward(ctx, grad_output) if grad_output.any() else grad_output


class NeedsGradient(Sigmoid):  # fails if grad_output is None
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output)


class Unsteady(Sigmoid):  # two runs differ a little
    @staticmethod
    def backward(ctx, grad_output):
        noise = 1e-10 * torch.rand((), dtype=grad_output.dtype)
        return Sigmoid.backward(ctx, grad_output) * (1 + noise)


def outcome(function, **options):
    try:
        gradcheck(function, x, **options)
    except (GradcheckError, NotImplementedError, TypeError) as error:
        return type(error).__name__
    return "passed"


for cls, options in (
    (SkipsZeros, {"check_batched_grad": True}),
    (Sigmoid, {"check_forward_ad": True}),
    (NeedsGradient, {"check_undefined_grad": False}),
    (Unsteady, {"nondet_tol": 1e-6}),
):
    by_default, with_option = outcome(cls.apply), outcome(cls.apply, **options)
    print(f"{cls.__name__:<13} {by_default:<14} {options} {with_option}")

# sphinx_gallery_start_ignore
assert outcome(SkipsZeros.apply) == outcome(Sigmoid.apply) == "passed"
assert outcome(SkipsZeros.apply, check_batched_grad=True) == "GradcheckError"
assert outcome(Sigmoid.apply, check_forward_ad=True) == "NotImplementedError"
assert outcome(NeedsGradient.apply) == "TypeError"
assert outcome(NeedsGradient.apply, check_undefined_grad=False) == "passed"
assert outcome(Unsteady.apply) == "GradcheckError"
assert outcome(Unsteady.apply, nondet_tol=1e-6) == "passed"
_escaped = []
for _cls, _options in ((NeedsGradient, {}), (Sigmoid, {"check_forward_ad": True})):
    try:
        gradcheck(_cls.apply, x, raise_exception=False, **_options)
    except (TypeError, NotImplementedError) as error:
        _escaped.append(type(error))
assert _escaped == [TypeError, NotImplementedError]
assert not gradcheck(
    SkipsZeros.apply, x, check_batched_grad=True, raise_exception=False
)
_raised = []
for _make in (
    lambda f: torch.autograd.functional.jacobian(f, x, vectorize=True),
    lambda f: torch.autograd.grad(
        f(x), x, torch.eye(2).double(), is_grads_batched=True
    ),
):
    _make(Sigmoid.apply)
    try:
        _make(SkipsZeros.apply)
    except RuntimeError as error:
        _raised.append("Batching rule not implemented" in str(error))
assert _raised == [True] * 2
# sphinx_gallery_end_ignore

# %%
# ``check_batched_grad`` runs ``backward`` under ``vmap``, as ``is_grads_batched=True`` does. ``check_forward_ad`` tests
# :ref:`forward mode <sphx_glr_gallery_functions_functions_and_transforms.py>`. ``raise_exception=False`` returns ``False`` only
# for a ``GradcheckError``. Errors of your own code, such as this ``TypeError``, are still raised.

# %%
# What people get wrong
# ---------------------
# **float32 inputs.** The right Function fails, after a warning:

single = x.detach().float().requires_grad_()

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    passed = gradcheck(Sigmoid.apply, single, raise_exception=False)

print("passed:", passed)
print(textwrap.fill(f"{caught[0].category.__name__}: {caught[0].message}", 88))

# sphinx_gallery_start_ignore
assert passed is False and len(caught) == 1
assert "is not a double precision floating point" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# Convert the inputs to ``float64``, and a copy of your module with ``copy.deepcopy(module).double()``.
#
# **Loosening the tolerance until it passes.** A wide ``atol`` lets the ``float32`` check pass, and ``LastTooLarge`` too:

for atol in (1e-5, 5e-2):
    passed = gradcheck(LastTooLarge.apply, x, atol=atol, raise_exception=False)
    print(f"atol={atol:g}: {'passed' if passed else 'caught'}")

# sphinx_gallery_start_ignore
assert passed and not gradcheck(LastTooLarge.apply, x, raise_exception=False)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert gradcheck(Sigmoid.apply, single, atol=5e-2)
# sphinx_gallery_end_ignore

# %%
# **Inputs that never reach the mistake.** The slope for negative numbers is wrong, 0.2 instead of 0.1:


class LeakyRelu(WrongSigmoid):
    @staticmethod
    def forward(x):
        return torch.where(x > 0, x, 0.1 * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, 0.2 * grad_output)


for numbers in ([0.5, 2.0], [-1.0, 2.0]):
    inputs = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    passed = gradcheck(LeakyRelu.apply, inputs, raise_exception=False)
    print(f"{numbers}: {'passed' if passed else 'caught'}")

# sphinx_gallery_start_ignore
assert not passed and gradcheck(LeakyRelu.apply, inputs.detach().abs().requires_grad_())
# sphinx_gallery_end_ignore

# %%
# Take numbers from each branch, but none at the kink, where :ref:`there is no derivative
# <sphx_glr_gallery_differentiation_points_without_a_derivative.py>`, or closer to it than ``eps``.
#
# **Expecting a check of a module's parameters.** ``gradcheck`` compares only the gradients of the inputs that you pass. This
# weight gets a wrong gradient, so pass it as an input, with ``torch.func.functional_call``.


class WrongWeight(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))

    def forward(self, x):
        return x * (self.weight + self.weight.detach())


module = WrongWeight()


def call(weight, x):
    return torch.func.functional_call(module, {"weight": weight}, (x,))


print("module:     ", gradcheck(module, x))
try:
    gradcheck(call, (module.weight, x))
except RuntimeError as error:
    message = str(error)
    print("with weight:", message.splitlines()[0])

# sphinx_gallery_start_ignore
assert gradcheck(module, x) and "with respect to input 0" in message
assert gradcheck(call, (module.weight.detach(), x))  # the weight is not looked at
for _at, _passes in (
    (0, False),
    (9e-7, False),
    (-9e-7, False),
    (2e-6, True),
    (-2e-6, True),
):
    _near = torch.tensor([_at], dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch.relu, _near, raise_exception=False) is _passes
# sphinx_gallery_end_ignore

# %%
# **A forward that draws random numbers.** Two evaluations use different draws, and their difference is divided by a tiny step.
# That gives very large numbers:

torch.manual_seed(1)
try:
    gradcheck(torch.nn.functional.dropout, x)
except RuntimeError as error:
    message = str(error)
    print(message)

# sphinx_gallery_start_ignore
import re

assert "Jacobian mismatch" in message
assert max(map(float, re.findall(r"\d+\.\d+(?:e\+\d+)?", message))) > 1e5
assert gradcheck(torch.nn.Dropout().eval(), x)
assert gradcheck(lambda x: torch.nn.functional.dropout(x, training=False), x)
# sphinx_gallery_end_ignore

# %%
# Draw the numbers before the check and keep them fixed, or switch dropout off: ``training=False`` in the function, ``eval()``
# for ``nn.Dropout``.

# %%
# Exercise
# --------
# The *forward difference* :math:`(f(x + \varepsilon) - f(x)) / \varepsilon` needs one extra evaluation instead of two. How
# does its truncation error grow with the step, and what is its smallest error in ``float64``?
#
# .. solution::
#
# The truncation error is about :math:`\frac{1}{2} |s''| \, \varepsilon`: ten times the step, ten times the error. So the best
# step is smaller, where rounding is larger, and the best error is worse.


def forward_error(eps):
    x = points.double()
    slope = (torch.sigmoid(x + eps) - torch.sigmoid(x)) / eps
    return (slope - exact).abs().mean().item()


eps = np.logspace(-11, 0, 56)
curves = {"forward": np.array([forward_error(e) for e in eps])}
curves["central"] = np.array([mean_error(torch.float64, e) for e in eps])
for name, curve in curves.items():
    print(f"{name}: best error {curve.min():.0e} at step {eps[curve.argmin()]:.0e}")

# sphinx_gallery_start_ignore
_rising = (eps > 1e-6) & (eps < 0.1)
_logs = np.log10(eps[_rising]), np.log10(curves["forward"][_rising])
assert abs(np.polyfit(*_logs, deg=1)[0] - 1) < 0.1
assert curves["forward"].min() > 10 * curves["central"].min()
assert eps[curves["forward"].argmin()] < 0.1 * eps[curves["central"].argmin()]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write a Function.
# - In PyTorch's reference: `gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__ and `Gradcheck mechanics
#   <https://docs.pytorch.org/docs/stable/notes/gradcheck.html>`__.
