r"""
returned an invalid gradient at index 0
=======================================

.. index::
   ! single: expected shape compatible with
   ! single: pruned layer fails in backward
   ! single: shape of a gradient in a custom backward

.. in-short::

   A ``backward`` returned a gradient that does not fit its input: another shape, or another device. Each gradient must have
   the shape and the device of its own input. Here ``x`` is 2×3, and its gradient was summed to 3.

   .. code-block:: diff

      - of_x = (gradient * scale).sum(0)
      + of_x = gradient * scale

   **Not this:** ``expand`` the gradient to the shape that the message asks for. The message is gone, and the gradient is wrong.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.autograd import Function

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    class Scale(Function):
        @staticmethod
        def forward(x, scale):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            x, scale = ctx.saved_tensors
            of_x = (gradient * scale).sum(0)
            of_scale = (gradient * x).sum(0)
            return of_x, of_scale

    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    scale = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    Scale.apply(x, scale).sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "Function ScaleBackward returned an invalid gradient at index 0 - got [3] "
    "but expected shape compatible with [2, 3]"
)


def _message(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


# sphinx_gallery_end_ignore

# %%
# - ``ScaleBackward``: the class whose ``backward`` ran, here ``Scale``.
# - ``index 0``: the first value that ``backward`` returned. It belongs to the first argument of ``forward``. Earlier versions
#   leave out the name: *invalid gradient at index 0 - expected shape [2] but got [4]*.
# - ``got [3] but expected ... [2, 3]``: shape of the gradient, and shape of the argument. For a tensor on the wrong device the
#   message ends in *expected device cuda:0 but got cpu*.
#
# Why
# ---
# A gradient has one number for each number of its tensor. ``scale`` was broadcast over the two rows, so its gradient is a sum
# over them. ``x`` was not broadcast, so there is nothing to sum.

y = Scale.apply(x, scale)

# graph: y -- The gradient for x must be 2×3 as x is, the gradient for scale 3 as scale is

# %%
# *Compatible* means: the same shape, or a larger one to which broadcasting could have brought the tensor. Autograd sums the
# larger one without a message. So you may leave out that ``sum``, and a mistake with a larger result is not noticed. Here a
# column of three numbers gets gradients of ones, in six shapes.


def attempt(shape):
    class Double(Function):
        @staticmethod
        def forward(column):
            return 2 * column

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

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
assert attempt((3, 1)) == [1] * 3 and attempt((3, 3)) == [3] * 3
assert attempt((5, 3, 1)) == [5] * 3 and attempt((0, 3, 1)) == [0] * 3
assert {attempt(s) for s in ((3,), (1, 1), (), (0, 1), (1,))} == {"invalid gradient"}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **In your own Function**: return each gradient in the shape of its argument. Sum over the dimensions in which the argument was
# broadcast, and over no others.


class FittingScale(Scale):
    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        of_x = gradient * scale
        of_scale = (gradient * x).sum(0)
        return of_x, of_scale


FittingScale.apply(x, scale).sum().backward()
print("x.grad:", x.grad)
print("scale.grad:", scale.grad)

# sphinx_gallery_start_ignore
assert torch.equal(x.grad, scale.expand(2, 3)) and torch.equal(scale.grad, x.sum(0))
_gradcheck = torch.autograd.gradcheck
assert _gradcheck(FittingScale.apply, (x.double(), scale.double()))


class _AnyScale(Scale):
    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        of_x = (gradient * scale).sum_to_size(x.shape)
        return of_x, (gradient * x).sum_to_size(scale.shape)


for _shapes in (
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((), (2,)),
    ((2,), (2,)),
):
    _values = [torch.rand(s, dtype=torch.float64, requires_grad=True) for s in _shapes]
    assert _gradcheck(_AnyScale.apply, _values)


def _made(make, device, dtype=torch.float32):
    class Made(Function):
        @staticmethod
        def forward(x):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            return make(gradient, *ctx.saved_tensors)

    x = torch.ones(2, 3, device=device, dtype=dtype, requires_grad=True)
    said = _message(lambda: Made.apply(x).sum().backward())
    return said or x.grad.dtype


assert _made(lambda gradient, x: torch.ones(2, 3), "meta") == (
    "Function MadeBackward returned an invalid gradient at index 0 - expected device meta but got cpu"
)
assert _made(lambda gradient, x: torch.ones_like(x), "meta") == torch.float32
assert _made(lambda gradient, x: gradient.new_ones(2, 3), "meta") == torch.float32
for _dtype in (torch.float64, torch.float16, torch.int64, torch.bool):
    assert (
        _made(lambda g, x, d=_dtype: torch.ones(2, 3, dtype=d), "cpu") == torch.float32
    )
# sphinx_gallery_end_ignore

# %%
# You do not know which argument is broadcast? ``(gradient * scale).sum_to_size(x.shape)`` sums over just these dimensions.
#
# **The device is wrong**: a tensor that ``backward`` makes, such as ``torch.ones(2, 3)``, is on the CPU. Make it with
# ``torch.ones_like(x)`` or ``gradient.new_ones(2, 3)``. (A wrong dtype is not an error for real numbers: the gradient is
# converted.)
#
# **The message names a node of PyTorch**, such as ``AddmmBackward0``: look for code that gives a parameter another size through
# ``.data``, as pruning scripts do. An output from before the change keeps the parameter's old shape in its graph.

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    layer = nn.Linear(4, 3)
    old_output = layer(torch.ones(2, 4))
    layer.weight.data = layer.weight.data[:2]
    layer.bias.data = layer.bias.data[:2]
    layer(torch.ones(2, 4)).sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0] == (
    "Function AddmmBackward0 returned an invalid gradient at index 0 - got [2, 2] "
    "but expected shape compatible with [3]"
)
_other = nn.Linear(4, 3)
_other(torch.ones(2, 4)).sum().backward()
_other.zero_grad()
_other.weight.data, _other.bias.data = _other.weight.data[:2], _other.bias.data[:2]
assert not _message(lambda: _other(torch.ones(2, 4)).sum().backward())  # none is alive
# sphinx_gallery_end_ignore

# %%
# Make new parameters instead. (And a new optimizer: it still has the old ones.)

layer.weight = nn.Parameter(layer.weight.detach())
layer.bias = nn.Parameter(layer.bias.detach())
layer(torch.ones(2, 4)).sum().backward()
print("layer.bias.grad:", layer.bias.grad)

# sphinx_gallery_start_ignore
assert layer.weight.grad.shape == (2, 4) and torch.all(layer.bias.grad == 2)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Expand the gradient** to the shape in the message. Each row then gets the sum over all rows. ``gradcheck`` sees it:

from torch.autograd import gradcheck

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class ExpandedScale(Scale):
        @staticmethod
        def backward(ctx, gradient):
            of_x, of_scale = Scale.backward(ctx, gradient)
            return of_x.expand(2, 3), of_scale

    x.grad = None
    ExpandedScale.apply(x, scale).sum().backward()
    print("x.grad:", x.grad)
    gradcheck(ExpandedScale.apply, (x.double(), scale.double()))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("GradcheckError:", str(error).partition(",")[0] + ", ...")
assert torch.equal(x.grad, 2 * scale.expand(2, 3))
assert len(raised) == 1
assert raised[0].startswith("Jacobian mismatch for output 0 with respect to input 0,")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: a custom Function from the start.
# - :ref:`sphx_glr_gallery_errors_number_of_gradients.py`: the same check, for their number.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: finds wrong gradients that have the right shape.
# - In PyTorch's reference: `Extending torch.autograd
#   <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__.
