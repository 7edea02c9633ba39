r"""
save_for_backward can only save variables
=========================================

.. index::
   ! single: number or shape needed in backward of a custom Function
   ! single: list of tensors saved in a custom Function
   ! single: argument 0 is of type int

.. in-short::

   ``ctx.save_for_backward`` got something that is not a tensor: a number, a shape, a list. Keep it as an attribute of ``ctx``.
   Spread a list of tensors with ``*``. *Variables* is the old word for tensors.

   .. code-block:: diff

      - ctx.save_for_backward(x, exponent)
      + ctx.save_for_backward(x)
      + ctx.exponent = exponent

   **Not this:** ``ctx.x = x`` for the tensors as well. Then a write to ``x`` before backward is not noticed.
"""

# %%
# The code that raises it
# -----------------------

from torch.autograd import Function

# sphinx_gallery_start_ignore
# isort: split
import gc
import traceback
import weakref

import numpy as np
import torch
from torch import nn

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
x = torch.tensor(2.0, requires_grad=True)
raised = []
try:
    # sphinx_gallery_end_ignore
    class Power(Function):
        @staticmethod
        def forward(x, exponent):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, exponent = inputs
            ctx.save_for_backward(x, exponent)

        @staticmethod
        def backward(ctx, gradient):
            x, exponent = ctx.saved_tensors
            return gradient * exponent * x ** (exponent - 1), None

    y = Power.apply(x, 3)
# sphinx_gallery_start_ignore
except TypeError as error:
    message = str(error)
    raised.append(message)
    print("TypeError:", message)
    _frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
assert raised == [
    "save_for_backward can only save variables, but argument 1 is of type int"
]
assert not {"forward", "setup_context"} & set(_frames)  # apply is written in C++ now
assert (_frames[-1] == "apply") == (TORCH < (2, 14)) == (len(_frames) > 1)
assert not Power.apply(x.detach(), 3).requires_grad  # nothing is saved, nothing checked


def _saving(*values):
    """What a Function says that saves these values."""

    class Saving(Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*values)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    try:
        Saving.apply(x)
    except TypeError as error:
        return str(error).removeprefix("save_for_backward can only save variables")
    return ""


_others = (2.0, True, x.shape, (x, x), [x], np.ones(2), {}, "a", nn.Linear(1, 1))
assert all(_saving(x, value).startswith(", but argument 1 is") for value in _others)
assert not _saving(x, None) and not _saving(nn.Parameter(torch.ones(2)))


class _OldPower(Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x, exponent)
        return x**exponent


try:
    _OldPower.apply(x, 3)
except TypeError as error:
    raised.append(str(error))
assert raised == [message] * 2
# sphinx_gallery_end_ignore

# %%
# - ``argument 1``: counted from 0 in the call of ``save_for_backward``. Here it is ``exponent``.
# - ``of type int``: what stood there. ``torch.Size``, ``tuple``, ``list`` and ``numpy.ndarray`` are refused as well.
#   ``None`` is allowed, in place of an optional tensor.
#
# The traceback ends at a call of ``apply`` and does not show the line to change: the check runs after ``setup_context``. It
# runs only if an input requires grad. With the older form, ``forward(ctx, x, exponent)`` without ``setup_context``, the message
# is the same. A relative in old versions is *save_for_backward can only save input or output tensors, but argument 0 doesn't
# satisfy this condition* (`pytorch#5632 <https://github.com/pytorch/pytorch/pull/5632>`__).
#
# Why
# ---
# ``save_for_backward`` does more than keep things. It notes the version of each tensor, so that backward can refuse a tensor
# that was overwritten, and backward frees what was saved. A number has neither a version nor memory to free. An attribute of
# ``ctx`` takes anything, and is neither checked nor freed.
#
# The fix
# -------
# Tensors into ``save_for_backward``, everything else on ``ctx``.


class Power(Function):
    @staticmethod
    def forward(x, exponent):
        return x**exponent

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, exponent = inputs
        ctx.save_for_backward(x)
        ctx.exponent = exponent

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.exponent * x ** (ctx.exponent - 1), None


y = Power.apply(x, 3)

# graph: y (saved) -- The node of Power has one saved tensor, x; the exponent is an attribute of the node

print("attribute:", y.grad_fn.exponent, "  saved:", y.grad_fn.saved_tensors)

# sphinx_gallery_start_ignore
assert y.grad_fn.exponent == 3 and y.grad_fn.saved_tensors == (x,)
# sphinx_gallery_end_ignore

# %%
# Backward frees the tensor, and leaves the attribute where it is.

y.backward()
print("x.grad:", x.grad, "  attribute:", y.grad_fn.exponent)

# sphinx_gallery_start_ignore
assert x.grad == 12
raised = []
try:
    y.grad_fn.saved_tensors
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 1 and "after they have already been freed" in raised[0]
assert y.grad_fn.exponent == 3
assert torch.func.grad(lambda value: Power.apply(value, 3))(x.detach()) == 12
# sphinx_gallery_end_ignore

# %%
# **A list of tensors**: spread it with ``*``, already in the call of ``apply``. ``apply`` does not look into a list, and a
# tensor inside of one gets no gradient.

import torch


class Weighted(Function):
    @staticmethod
    def forward(x, *weights):
        return x * sum(weights)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        x, *weights = ctx.saved_tensors
        return gradient * sum(weights), *[gradient * x for _ in weights]


weights = [torch.tensor(w, requires_grad=True) for w in (5.0, 7.0)]
x.grad = None
Weighted.apply(x, *weights).backward()
print("x.grad:", x.grad, "  weights:", [w.grad for w in weights])


# sphinx_gallery_start_ignore
class _Listed(Function):
    @staticmethod
    def forward(x, weights):
        return x * sum(weights)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], *inputs[1])


assert x.grad == 12 and all(w.grad == 2 for w in weights)
assert not _Listed.apply(torch.tensor(2.0), weights).requires_grad
assert Weighted.apply(torch.tensor(2.0), *weights).requires_grad
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Keep tensors as attributes, too.** Two things are lost. The first is the check for overwritten tensors: here the result is
# changed in place, and backward computes with the new value.


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.result = output

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.result


x.grad = None
y = Exp.apply(x)
y *= 10
y.backward()
print(f"x.grad = {x.grad:.2f}, should be {10 * x.detach().exp():.2f}")


# sphinx_gallery_start_ignore
class _SavedExp(Function):
    forward = Exp.forward

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0]


class _KeptInput(Exp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.value = inputs[0]

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.value.exp()


_input = x * 1
y = _KeptInput.apply(_input)
_input *= 2
assert torch.allclose(torch.autograd.grad(y, x)[0], (2 * x).exp())  # exp(x) is right

assert torch.allclose(x.grad, 100 * x.exp())
raised = []
try:
    y = _SavedExp.apply(x)
    y *= 10
    y.backward()
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 1 and "modified by an inplace operation" in raised[0]


def _outlives(function):
    """Whether an output is still there when nobody uses it any more."""
    gc.collect()
    gc.disable()
    output = function.apply(x * 1)
    reference = weakref.ref(output)
    del output
    gc.enable()
    return reference() is not None


assert [_outlives(f) for f in (Exp, _SavedExp, _KeptInput)] == [True, False, False]
# sphinx_gallery_end_ignore

# %%
# The second is memory. An *output* that is kept as an attribute holds its node, and the node holds the output. This circle
# stays in memory until Python's garbage collector runs. With ``save_for_backward`` there is no circle.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_context_methods.py`: what ``ctx`` can do, and what attributes cost.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: a custom Function from the start.
# - :ref:`sphx_glr_gallery_errors_number_of_gradients.py`: why ``backward`` returns ``None`` for the number.
# - In PyTorch's reference: `save_for_backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html>`__.
