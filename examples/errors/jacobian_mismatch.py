r"""
Jacobian mismatch for output 0 with respect to input 0
======================================================

.. index::
   ! single: gradcheck fails
   ! single: analytical and numerical gradients differ
   ! single: gradcheck and float32

``gradcheck`` computed the derivative twice, from differences of function values and by backward, and the two do not
agree. Either the backward is wrong, or the check was made where it cannot work: in single precision, or at a kink of
the function.
"""

# %%
# The shortest code that raises it
# --------------------------------

import warnings

import matplotlib.pyplot as plt
import torch
from torch.autograd import Function, gradcheck


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x**2


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
try:
    gradcheck(Cube.apply, x)
except RuntimeError as error:
    print(f"{type(error).__name__}: {error}")
    assert str(error).startswith("Jacobian mismatch for output 0")

# %%
# Earlier versions raised a plain *RuntimeError* with the same text.

# %%
# Why
# ---
# The numerical values are measured: a small step to both sides, and the slope between. They need no formula, so a
# difference speaks against the analytical ones. Look at how they differ. Here each is two thirds of what it should
# be, and the zeros are where they belong: a factor is wrong.

point, claimed, step = 2.0, 8.0, 1e-6
measured = ((point + step) ** 3 - (point - step) ** 3) / (2 * step)

axis = torch.linspace(1, 3, 50)
figure, ax = plt.subplots(figsize=(7, 3))
ax.plot(axis, axis**3, color="#1e293b", label="$x^3$")
near = torch.tensor([1.4, 2.6])
lines = {"measured": (measured, "#2563eb"), "from backward": (claimed, "#c2410c")}
for style, (name, (slope, colour)) in zip(("-", "--"), lines.items(), strict=True):
    line = 8 + slope * (near - point)
    ax.plot(near, line, style, color=colour, label=f"{name}: {slope:.0f}")
ax.set_title("Two answers to one question: how steep is it at 2?")
ax.set_xlabel("x")
ax.legend()

# figure: The curve of x to the third between 1 and 3, with two straight lines through the point at 2. The line with
#   the measured slope, 12, touches the curve. The line with the slope from backward, 8, cuts through it.

# sphinx_gallery_start_ignore
assert abs(measured - 12) < 1e-6
(analytical,) = torch.autograd.grad(Cube.apply(x).sum(), x)
assert torch.allclose(analytical, 2 / 3 * (3 * x**2)) and analytical[1] == claimed
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **The formula is wrong.** Mend it. Factors, signs and a transposed matrix can be seen in the two Jacobians.


class RightCube(Cube):
    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


print("gradcheck:", gradcheck(RightCube.apply, x))
assert gradcheck(RightCube.apply, x)

# %%
# **The inputs are not float64.** A difference of two ``float32`` values has few digits left, and the right formula
# fails as well. A warning says so. Give the function double inputs, and call ``module.double()`` if it is a module.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        gradcheck(RightCube.apply, x.detach().float().requires_grad_())
    except RuntimeError as error:
        print(str(error).partition("analytical")[0])
        assert str(error).startswith("Jacobian mismatch for output 0")
print(str(caught[0].message).partition(". ")[0])

# sphinx_gallery_start_ignore
assert "is not a double precision floating point" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# **The point is a kink.** The step to both sides finds the mean of two slopes, backward takes one of them. Move the
# inputs away from such points.

for value in (0.0, 0.3):
    at = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    print(f"relu at {value}:", gradcheck(torch.relu, at, raise_exception=False))

# sphinx_gallery_start_ignore
at = torch.zeros(1, dtype=torch.float64, requires_grad=True)
assert not gradcheck(torch.relu, at, raise_exception=False)
assert gradcheck(torch.relu, at.detach().add(0.3).requires_grad_())
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# A tolerance that is large enough passes everything, also the wrong ``Cube`` from above.

print("gradcheck:", gradcheck(Cube.apply, x, atol=5))
assert gradcheck(Cube.apply, x, atol=5)

# %%
# It will not fail later either. It will be wrong: the minimum of :math:`x^3 - 12 x` is at 2, and descent with the
# gradient of ``Cube`` settles somewhere else.

ends = {}
for function in (RightCube, Cube):
    w = torch.tensor(1.0, requires_grad=True)
    for _ in range(200):
        (gradient,) = torch.autograd.grad(function.apply(w) - 12 * w, w)
        w = (w - 0.05 * gradient).detach().requires_grad_()
    ends[function] = w.item()
    print(f"{function.__name__:<9} ends at {w.item():.4f}")

# sphinx_gallery_start_ignore
assert abs(ends[RightCube] - 2) < 1e-4 and abs(ends[Cube] - 6**0.5) < 1e-4
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: what the check computes, how precise it is, and what it misses
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: which slope autograd takes at a kink
# - `torch.autograd.gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__ in PyTorch's reference
