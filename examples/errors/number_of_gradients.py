r"""
returned an incorrect number of gradients (expected 2, got 1)
=============================================================

.. index::
   ! single: None in the return value of a custom backward
   ! single: backward of a custom Function without a return statement
   ! single: gradient different than None at position 2

A custom ``backward`` returns one value for each argument of ``forward``, ``ctx`` aside. A number or a flag counts
too: its value is ``None``. Usually an argument was added and the return statement was not changed.
"""

# %%
# The shortest code that raises it
# --------------------------------

import matplotlib.pyplot as plt
import torch
from torch.autograd import Function, gradcheck


class Exp(Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch.exp(scale * x)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * ctx.scale * y


x = torch.tensor(1.0, requires_grad=True)
try:
    Exp.apply(x, 0.5).backward()
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "returned an incorrect number of gradients" in str(error)

# %%
# The name is that of the class with *Backward* appended. The error is raised by ``backward()``; the forward pass has
# gone through.

# %%
# Why
# ---
# Autograd matches by position: the first value belongs to the first argument, the second to the second. It cannot
# guess which one was left out.

figure, ax = plt.subplots(figsize=(7, 2))
ax.set_title("One value for each argument, in the same order")
ax.set_axis_off()
ax.axis((0, 10, 0, 2))
ax.text(0, 1.7, "forward takes")
ax.text(0, 0.2, "backward returns")
pairs = {4.6: ("x", "gradient * ctx.scale * y"), 8.5: ("scale", "None")}
for middle, (argument, value) in pairs.items():
    ax.text(middle, 1.7, argument, family="monospace", ha="center", color="#2563eb")
    ax.text(middle, 0.2, value, family="monospace", ha="center", color="#c2410c")
    ends = {"xy": (middle, 0.55), "xytext": (middle, 1.6)}
    ax.annotate("", **ends, arrowprops={"arrowstyle": "->", "color": "#64748b"})

# figure: Above, the arguments of forward: x and scale. Below, the values that backward returns: the gradient under x,
#   None under scale. An arrow leads down from each argument to its value.

# %%
# What is returned, and what comes of it: values that are missing raise, and so do surplus values, unless they are
# ``None``. A gradient in place of a number raises too, with a different message.


def attempt(values):
    class Double(Function):
        @staticmethod
        def forward(ctx, x, flag):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            given = {"dx": 2 * gradient, "None": None}
            return tuple(given[value] for value in values.split())

    try:
        return f"x.grad = {torch.autograd.grad(Double.apply(x, True), x)[0]:g}"
    except RuntimeError as error:
        return str(error).partition("returned ")[2].partition(", but")[0]


for values in ("dx", "dx None", "dx None None", "dx None dx", "None dx"):
    print(f"{values:<14} {attempt(values)}")

# sphinx_gallery_start_ignore
assert attempt("dx None") == attempt("dx None None") == "x.grad = 2"
assert "(expected 2, got 3)" in attempt("dx None dx")
assert attempt("None dx") == "a gradient different than None at position 2"
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Return ``None`` in the place of each argument that has no gradient. Here ``backward`` of the class above is
# replaced.


def backward(ctx, gradient):
    (y,) = ctx.saved_tensors
    return gradient * ctx.scale * y, None


Exp.backward = staticmethod(backward)
Exp.apply(x, 0.5).backward()
print(f"x.grad = {x.grad:.4f}")
assert torch.allclose(x.grad, 0.5 * torch.exp(torch.tensor(0.5)))

# %%
# If the new argument is a tensor to be trained, its place needs its gradient. ``gradcheck`` compares both with
# numerical derivatives.


class TrainedExp(Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = torch.exp(scale * x)
        ctx.save_for_backward(x, scale, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, scale, y = ctx.saved_tensors
        return gradient * scale * y, gradient * x * y


inputs = [torch.tensor(v, dtype=torch.double, requires_grad=True) for v in (1.0, 0.5)]
print("gradcheck:", gradcheck(TrainedExp.apply, inputs))

# sphinx_gallery_start_ignore
assert gradcheck(TrainedExp.apply, inputs)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# ``None`` in place of a tensor silences the message as well. It says that the tensor has no gradient, and autograd
# believes it: training goes on and never moves ``scale``. ``gradcheck`` does not believe it.

scale = torch.tensor(0.5, requires_grad=True)
optimizer = torch.optim.SGD([scale], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    Exp.apply(x, scale).backward()
    optimizer.step()
print(f"scale.grad: {scale.grad}   scale: {scale.item()}")
assert scale.grad is None and scale == 0.5

try:
    gradcheck(Exp.apply, inputs)
except RuntimeError as error:
    print("gradcheck:", str(error).partition(",")[0])
    assert "with respect to input 1" in str(error)

# %%
# A ``backward`` without a return statement returns one ``None``. With one argument that is the right number, so
# nothing is raised, and the gradient is missing.


class Forgotten(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        2 * gradient


x.grad = None
Forgotten.apply(x).backward()
print("x.grad:", x.grad)
assert x.grad is None

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: what backward may return, and where ``None`` belongs
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: how the check works
# - :ref:`sphx_glr_gallery_errors_invalid_gradient.py`: the right number of gradients, one of the wrong shape
# - `Extending torch.autograd <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__
#   in PyTorch's reference
