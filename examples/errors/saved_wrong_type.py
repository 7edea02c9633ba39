r"""
save_for_backward can only save variables
=========================================

.. index::
   ! single: number or shape needed in backward of a custom Function
   ! single: list of tensors saved in a custom Function
   ! single: argument 0 is of type int

.. in-short::

   ``ctx.save_for_backward`` takes only tensors (*variables* is the old word), and it got a number, a shape or a list. Keep that
   as an attribute of ``ctx``. Spread a list of tensors with ``*``.

   .. code-block:: diff

      - ctx.save_for_backward(x, exponent)
      + ctx.save_for_backward(x)
      + ctx.exponent = exponent

   **Not this:** ``ctx.x = x`` for the tensors as well. Then a write to ``x`` before backward is not noticed.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.autograd import Function

# sphinx_gallery_start_ignore
# isort: split
import traceback

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

    x = torch.tensor(2.0, requires_grad=True)
    y = Power.apply(x, 3)
# sphinx_gallery_start_ignore
except TypeError as error:
    message = str(error)
    print("TypeError:", message)
    _frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
assert not {"forward", "setup_context"} & set(_frames)
assert (
    message
    == "save_for_backward can only save variables, but argument 1 is of type int"
)
assert not Power.apply(x.detach(), 3).requires_grad  # nothing is saved, nothing checked


def _saves(*values):
    """Whether a Function of the older form can save these values."""

    class Saving(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, *values)
            return x.clone()

    try:
        Saving.apply(x)
    except TypeError as error:
        assert str(error).startswith(message.partition("int")[0])
        return False
    return True


assert not any(map(_saves, (3, 2.0, x.shape, (x, x), [x], x.detach().numpy())))
assert _saves(None)
# sphinx_gallery_end_ignore

# %%
# - ``argument 1``: counted from 0 in the call of ``save_for_backward``. Here it is ``exponent``.
# - ``of type int``: the type of that argument. ``torch.Size``, ``tuple``, ``list`` and ``numpy.ndarray`` are refused as well.
#   ``None`` is allowed, in place of an optional tensor.
#
# The traceback ends at ``apply`` and does not show the line to change, because the check runs after ``setup_context``. It runs
# only if an input requires grad. With the older form, ``forward(ctx, x, exponent)``, the message is the same. Old versions say
# *save_for_backward can only save input or output tensors, but argument 0 doesn't satisfy this condition*.
#
# Why
# ---
# ``save_for_backward`` notes the version of each tensor, so that backward can refuse a tensor that was overwritten. Backward
# then frees what was saved. A number needs neither. An attribute of ``ctx`` takes anything, and is neither checked nor freed.
#
# The fix
# -------
# Put tensors into ``save_for_backward`` and everything else on ``ctx``.


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
# sphinx_gallery_end_ignore

# %%
# **A list of tensors**: spread it with ``*``, already in the call of ``apply``. ``apply`` does not look into a list, and a
# tensor inside of one gets no gradient.


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
assert x.grad == 12 and all(w.grad == 2 for w in weights)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Keep tensors as attributes, too.** You lose the check for overwritten tensors. Here the result is changed in place, and
# backward computes with the new value:


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
import gc
import weakref

assert torch.allclose(x.grad, 100 * x.exp())


class _SavedExp(Exp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0]


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


assert _outlives(Exp) and not _outlives(_SavedExp)
# sphinx_gallery_end_ignore

# %%
# You also lose memory. An *output* that is kept as an attribute holds its node, and the node holds the output. This circle
# stays until Python's garbage collector runs. With ``save_for_backward`` there is no circle.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_context_methods.py`: what ``ctx`` can do, and what attributes cost.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: a custom Function from the start.
# - :ref:`sphx_glr_gallery_errors_number_of_gradients.py`: why ``backward`` returns ``None`` for the number.
# - In PyTorch's reference: `save_for_backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html>`__.
