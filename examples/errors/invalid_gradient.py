r"""
returned an invalid gradient at index 0
=======================================

.. index::
   ! single: expected shape compatible with
   ! single: pruned layer fails in backward
   ! single: shape of a gradient in a custom backward

A backward function computed a gradient whose shape does not fit its tensor. If the function is your own, its formula
reduces too much or forgets to reshape. If it is one of PyTorch's, a parameter has changed its size behind autograd's
back.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch
from torch.autograd import Function, gradcheck


class Scale(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        return (gradient * scale).sum(0), (gradient * x).sum(0)


x = torch.arange(6.0).reshape(2, 3).requires_grad_()
scale = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
try:
    Scale.apply(x, scale).sum().backward()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert "returned an invalid gradient at index 0" in message

# sphinx_gallery_start_ignore
assert "got [3] but expected shape compatible with [2, 3]" in message
# sphinx_gallery_end_ignore

# %%
# *Index 0* is the first value that ``backward`` returned, which belongs to the first argument of ``forward``. Earlier
# versions said it without the name: *invalid gradient at index 0 - expected shape [2] but got [4]*.

# %%
# Why
# ---
# A gradient has one number for each number of its tensor, so it has the tensor's shape. ``scale`` was broadcast over
# two rows, and its gradient is a sum over them. ``x`` was not, and there is nothing to sum.

y = Scale.apply(x, scale)

# graph: y -- The gradient for x must be 2×3 as x is, the gradient for scale 3 as scale is

# %%
# *Compatible* means: the shape itself, or a larger one that broadcasting could have made of it. The larger one is
# summed up without a word, also when it came from a mistake. Here a column of three numbers gets various gradients.


def attempt(shape):
    class Double(Function):
        @staticmethod
        def forward(ctx, column):
            return 2 * column

        @staticmethod
        def backward(ctx, gradient):
            return torch.ones(shape)

    column = torch.ones(3, 1, requires_grad=True)
    try:
        (gradient,) = torch.autograd.grad(Double.apply(column).sum(), column)
        return gradient.flatten().tolist()
    except RuntimeError:
        return "invalid gradient"


for shape in ((3, 1), (3, 3), (5, 3, 1), (3,), (1, 1), ()):
    print(f"{shape!s:<10} {attempt(shape)}")

# sphinx_gallery_start_ignore
assert [attempt(s) for s in ((3, 1), (3, 3), (5, 3, 1))] == [
    [1.0] * 3,
    [3.0] * 3,
    [5.0] * 3,
]
assert {attempt(s) for s in ((3,), (1, 1), ())} == {"invalid gradient"}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Give each gradient the shape of its argument. ``sum_to_size`` undoes whatever broadcasting did, and nothing if it
# did nothing.


class FittingScale(Scale):
    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        of_x = (gradient * scale).sum_to_size(x.shape)
        return of_x, (gradient * x).sum_to_size(scale.shape)


FittingScale.apply(x, scale).sum().backward()
print("x.grad     =", x.grad.tolist())
print("scale.grad =", scale.grad.tolist())
assert torch.equal(x.grad, scale.expand(2, 3)) and torch.equal(scale.grad, x.sum(0))

# sphinx_gallery_start_ignore
assert gradcheck(FittingScale.apply, (x.double(), scale.double()))
# sphinx_gallery_end_ignore

# %%
# If the message names one of PyTorch's own nodes, look for code that gave a parameter a different size through
# ``.data``, as pruning scripts do. The graph of an output that is still alive knows the parameter by its old shape.

layer = torch.nn.Linear(4, 3)
old_output = layer(torch.ones(2, 4))
layer.weight.data = layer.weight.data[:2]
layer.bias.data = layer.bias.data[:2]
try:
    layer(torch.ones(2, 4)).sum().backward()
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "AddmmBackward0 returned an invalid gradient at index 0" in str(error)

# %%
# A new parameter has no past.

layer.weight = torch.nn.Parameter(layer.weight.detach())
layer.bias = torch.nn.Parameter(layer.bias.detach())
layer(torch.ones(2, 4)).sum().backward()
print(tuple(layer.weight.shape), tuple(layer.weight.grad.shape))
assert layer.weight.grad.shape == (2, 4) and torch.all(layer.bias.grad == 2)

# %%
# What not to do
# --------------
# Blowing the gradient up to the shape that the message asks for silences it. The sum over the rows is then handed to
# each of them.


class BlownUpScale(Scale):
    @staticmethod
    def backward(ctx, gradient):
        of_x, of_scale = Scale.backward(ctx, gradient)
        return of_x.expand(2, 3), of_scale


x.grad = None
BlownUpScale.apply(x, scale).sum().backward()
print("x.grad =", x.grad.tolist())
assert torch.equal(x.grad, 2 * scale.expand(2, 3))

try:
    gradcheck(BlownUpScale.apply, (x.double(), scale.double()))
except RuntimeError as error:
    print("gradcheck:", str(error).partition(",")[0])
    assert str(error).startswith("Jacobian mismatch")

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: what a backward function may return
# - :ref:`sphx_glr_gallery_errors_number_of_gradients.py`: the same check, for their number
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: finds the wrong gradients that have the right shape
# - `Extending torch.autograd <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__
#   in PyTorch's reference
