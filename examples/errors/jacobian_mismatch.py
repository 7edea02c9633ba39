r"""
Jacobian mismatch for output 0 with respect to input 0
======================================================

.. index::
   ! single: gradcheck fails
   ! single: analytical and numerical gradients differ
   ! single: gradcheck and float32

.. in-short::

   ``gradcheck`` measured the derivative and compared it with your ``backward``: the two differ. Correct the formula. If it is
   right, the check cannot work here: the inputs are not ``float64``, or the function has a kink or is random.

   .. code-block:: diff

      - return gradient * 2 * x**2
      + return gradient * 3 * x**2

   **Not this:** a larger ``atol``. A tolerance that is large enough passes a wrong formula.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.autograd import Function, gradcheck

# sphinx_gallery_start_ignore
# isort: split
import warnings

try:
    # sphinx_gallery_end_ignore
    class Cube(Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 2 * x**2

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    gradcheck(Cube.apply, x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print(f"{type(error).__name__}: {message}")
assert message.startswith("Jacobian mismatch for output 0 with respect to input 0,\n")


def _message(function, *inputs, **options):
    """What gradcheck says, and the first warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            gradcheck(function, inputs, **options)
        except RuntimeError as error:
            return str(error), [str(warning.message) for warning in caught]
    return "", [str(warning.message) for warning in caught]


# sphinx_gallery_end_ignore

# %%
# - ``output 0`` and ``input 0``: which pair of your function's results and arguments differs first. Both are counted from 0.
# - ``numerical``: measured with small steps. ``analytical``: what ``backward`` computed. Here, rows are elements of the input,
#   columns elements of the output.
#
# Look at *how* they differ. Here each number is two thirds of what it should be, and the zeros are in their places: a factor is
# wrong. A wrong sign and a transposed matrix can be seen in the same way.
#
# Why
# ---
# The numerical values need no formula: a small step to both sides, and the slope between the two results.
#
# .. how-measured:: The function draw_slopes() measures the slope at 2 with steps of a millionth, and draws both slopes.

import matplotlib.pyplot as plt


def draw_slopes(claimed, step=1e-6):
    measured = ((2 + step) ** 3 - (2 - step) ** 3) / (2 * step)
    _, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    axis = torch.linspace(1, 3, 50)
    ax.plot(axis, axis**3, color="#1e293b", label="$x^3$")
    near = torch.tensor([1.4, 2.6])
    lines = {"measured": (measured, "#2563eb"), "from backward": (claimed, "#c2410c")}
    for style, (name, (slope, color)) in zip(("-", "--"), lines.items(), strict=True):
        line = 8 + slope * (near - 2)
        ax.plot(near, line, style, color=color, label=f"{name}: {slope:.0f}")
    ax.set_title("Two answers to one question: how steep is it at 2?")
    ax.set_xlabel("x")
    ax.legend()
    return measured


# %%
# At 2, the two slopes are 12 and 8:

measured = draw_slopes(claimed=8)

# figure: The curve of x to the third between 1 and 3, with two straight lines through the point at 2. The line with
#   the measured slope, 12, touches the curve. The line with the slope from backward, 8, cuts through it.

# sphinx_gallery_start_ignore
assert abs(measured - 12) < 1e-6
(_analytical,) = torch.autograd.grad(Cube.apply(x).sum(), x)
assert torch.allclose(_analytical, 2 / 3 * (3 * x**2)) and _analytical[1] == 8
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **The formula is wrong.** Correct it.


class RightCube(Cube):
    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


print("gradcheck:", gradcheck(RightCube.apply, x))

# sphinx_gallery_start_ignore
assert gradcheck(RightCube.apply, x)
# sphinx_gallery_end_ignore

# %%
# **The inputs are not float64.** A difference of two ``float32`` values has few correct digits, and a right formula usually
# fails, too. A warning says so. Make the inputs with ``dtype=torch.float64``, and convert a module with ``module.double()``. If
# the function itself converts to ``float32`` on the way, it fails without a warning.

# sphinx_gallery_start_ignore
raised = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        # sphinx_gallery_end_ignore
        single = torch.tensor([1.0, 2.0], requires_grad=True)
        gradcheck(RightCube.apply, single)
    # sphinx_gallery_start_ignore
    except RuntimeError as error:
        raised.append(str(error))
_warned = [str(warning.message).strip() for warning in caught]
print(
    "UserWarning:", _warned[0].replace("point or", "point\nor").replace("k w", "k\nw")
)
print("GradcheckError:", raised[0].partition("analytical")[0].strip())
assert len(raised) == 1 and raised[0].startswith("Jacobian mismatch for output 0 with")
assert len(_warned) == 1 and "will likely fail" in _warned[0]
torch.manual_seed(0)
assert _message(torch.nn.Linear(2, 2), single)[0].startswith("Jacobian mismatch")
assert gradcheck(torch.nn.Linear(2, 2).double(), x)
_said, _warnings = _message(lambda v: (v.float() ** 3).double(), x)
assert _said.startswith("Jacobian mismatch") and not _warnings
# sphinx_gallery_end_ignore

# %%
# **The point is a kink.** The steps to both sides measure the mean of two slopes. ``backward`` of ``relu`` takes one of the
# two, so the check fails. ``backward`` of ``abs`` takes 0, which is the mean, so the check passes and the kink stays unnoticed.
# Move the inputs away from such points.

for value in (0.0, 0.3):
    at = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    print(f"relu at {value}:", gradcheck(torch.relu, at, raise_exception=False))
    print(f"abs  at {value}:", gradcheck(torch.abs, at, raise_exception=False))

# sphinx_gallery_start_ignore
_kink = torch.zeros(1, dtype=torch.float64, requires_grad=True)
_away = torch.full((1,), 0.3, dtype=torch.float64, requires_grad=True)
_passes = {
    torch.relu: False,
    torch.abs: True,
    lambda x: torch.maximum(x, -x): True,
}
for _function, _expected in _passes.items():
    assert gradcheck(_function, _kink, raise_exception=False) is _expected
    assert gradcheck(_function, _away)
assert torch.autograd.grad(torch.relu(_kink).sum(), _kink)[0] == 0
assert torch.autograd.grad(torch.abs(_kink).sum(), _kink)[0] == 0
# sphinx_gallery_end_ignore

# %%
# **The function is random**, such as dropout in training mode. Each call then has another result. Call ``module.eval()``, or
# draw the random numbers once, outside of the function. Huge numerical values, as here for ``nn.Dropout``, are a sign of it:

from torch import nn

torch.manual_seed(0)
values = torch.ones(4, dtype=torch.float64, requires_grad=True)

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    gradcheck(nn.Dropout(0.5), values)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("GradcheckError:", str(error).partition("analytical")[0].strip())
assert len(raised) == 1 and raised[0].startswith("Jacobian mismatch for output 0")
assert gradcheck(nn.Dropout(0.5).eval(), values)

assert _message(lambda v: v * v.detach(), x)[0].startswith("Jacobian mismatch")
_factor = x.detach().clone()
assert gradcheck(lambda v: v * _factor, x)


class _Noisy(RightCube):
    size = 1e-4

    @staticmethod
    def backward(ctx, gradient):
        noise = 1 + _Noisy.size * torch.rand(2, dtype=torch.float64)
        return RightCube.backward(ctx, gradient) * noise


assert _message(_Noisy.apply, x)[0].startswith("Backward is not reentrant")
assert _message(_Noisy.apply, x, nondet_tol=1e-6)[0].startswith("Backward is not")
_Noisy.size = 1e-10
assert gradcheck(_Noisy.apply, x, nondet_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# **A part is constant on purpose**, such as a factor with ``detach()``. The numerical side does not know that. Give
# ``gradcheck`` a function that gets this part from outside.
#
# A sibling: ``Backward is not reentrant`` means that two runs of the same ``backward`` differed. If the difference is only
# rounding, as in sums on a GPU, allow it with ``nondet_tol=1e-6``.
#
# What not to do
# --------------
# **A large tolerance.** The wrong ``Cube`` passes as well. Training with it raises nothing, and ends in the wrong place:

print("gradcheck:", gradcheck(Cube.apply, x, atol=5))
for function in (RightCube, Cube):
    w = torch.tensor(1.0, requires_grad=True)
    for _ in range(200):
        (gradient,) = torch.autograd.grad(function.apply(w) - 12 * w, w)
        w = (w - 0.05 * gradient).detach().requires_grad_()
    print(f"{function.__name__:<9} ends at {w.item():.4f}")

# sphinx_gallery_start_ignore
assert gradcheck(Cube.apply, x, atol=5)
assert function is Cube and abs(w.item() - 6**0.5) < 1e-4
w = torch.tensor(1.0, requires_grad=True)
for _ in range(200):
    (gradient,) = torch.autograd.grad(RightCube.apply(w) - 12 * w, w)
    w = (w - 0.05 * gradient).detach().requires_grad_()
assert abs(w.item() - 2) < 1e-4
# sphinx_gallery_end_ignore

# %%
# The minimum of :math:`x^3 - 12 x` is at 2. Descent with the gradient of ``Cube`` ends somewhere else.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: what the check computes, how precise it is, and what it misses.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: which slope autograd takes at a kink.
# - In PyTorch's reference: `torch.autograd.gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__.
