r"""
save_for_backward can only save variables
=========================================

.. index::
   ! single: number or shape needed in backward of a custom Function
   ! single: list of tensors saved in a custom Function
   ! single: argument 0 is of type int

``save_for_backward`` was given something that is not a tensor: a number, a shape, a list of tensors, an array. The
word *variables* is the old name of tensors. What is not a tensor goes on ``ctx`` as an attribute.
"""

# %%
# The shortest code that raises it
# --------------------------------

import gc
import traceback
import weakref

import matplotlib.pyplot as plt
import torch
from torch.autograd import Function


class Power(Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(exponent, x)
        return x**exponent


x = torch.tensor(2.0, requires_grad=True)
try:
    Power.apply(x, 3)
except TypeError as error:
    print("TypeError:", error)
    print("raised at:", traceback.extract_tb(error.__traceback__)[0].line)
    assert str(error).startswith("save_for_backward can only save variables")

# %%
# Arguments are counted from 0, in the list that ``save_for_backward`` got. The check runs when ``forward`` is
# through, so the traceback names the call of ``apply`` and not the line to mend. An earlier relative of this error is
# *save_for_backward can only save input or output tensors, but argument 0 doesn't satisfy this condition*.

# %%
# Why
# ---
# ``save_for_backward`` does more than keep things. It notes the version of each tensor, so that backward can refuse
# one that was changed since, and backward frees what it kept. Only tensors have versions and memory to free. An
# attribute of ``ctx`` takes anything, and neither checks nor frees it.

figure, ax = plt.subplots(figsize=(7, 2))
ax.set_title("Two places in the node that apply makes")
ax.set_axis_off()
ax.axis((0, 10, 0, 2))
rows = [
    (
        "save_for_backward(x)",
        "tensors only: version checked,\nfreed by backward",
        "#c2410c",
    ),
    ("ctx.exponent = 3", "anything: kept as it is", "#64748b"),
]
for bottom, (name, what, colour) in zip((1.1, 0.1), rows, strict=True):
    ax.add_patch(plt.Rectangle((0.1, bottom), 9.8, 0.8, fill=False, edgecolor=colour))
    ax.text(0.3, bottom + 0.4, name, family="monospace", va="center", color=colour)
    ax.text(4.6, bottom + 0.4, what, va="center")

# figure: Two boxes. In the first, save_for_backward with x takes tensors only; their version is checked and backward
#   frees them. In the second, the attribute exponent of ctx takes anything and keeps it as it is.

# %%
# The fix
# -------
# Tensors into ``save_for_backward``, everything else on ``ctx``. (``None`` may be saved too, in place of an optional
# tensor.)


class Power(Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return x**exponent

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.exponent * x ** (ctx.exponent - 1), None


y = Power.apply(x, 3)
y.backward()

print("x.grad =", x.grad.item())
assert x.grad == 12

# %%
# A list or tuple of tensors is spread with ``*``, and not only there. ``apply`` does not look into a list either, and
# a tensor that comes in one gets no gradient. So the tensors are arguments of their own, and backward returns a
# gradient for each.


class Weighted(Function):
    @staticmethod
    def forward(ctx, x, *weights):
        ctx.save_for_backward(x, *weights)
        return x * sum(weights)

    @staticmethod
    def backward(ctx, gradient):
        x, *weights = ctx.saved_tensors
        return gradient * sum(weights), *[gradient * x for _ in weights]


weights = [torch.tensor(w, requires_grad=True) for w in (5.0, 7.0)]
x.grad = None
Weighted.apply(x, *weights).backward()
print("x.grad =", x.grad.item(), "  weights:", [w.grad.item() for w in weights])
assert x.grad == 12 and all(w.grad == 2 for w in weights)


# sphinx_gallery_start_ignore
class Listed(Function):
    @staticmethod
    def forward(ctx, x, weights):
        ctx.save_for_backward(x, *weights)
        return x * sum(weights)


assert not Listed.apply(torch.tensor(2.0), weights).requires_grad
assert Weighted.apply(torch.tensor(2.0), *weights).requires_grad
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# Once attributes are in use, it is tempting to keep the tensors there as well. No message comes, and two things are
# lost. The first is the check of the version: the tensor is changed in place, and backward computes with the new
# value.


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()
        return ctx.result

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.result


x.grad = None
y = Exp.apply(x)
z = y.mul_(10)
z.backward()
print(f"x.grad = {x.grad.item():.2f}, should be {10 * x.exp().item():.2f}")
assert torch.allclose(x.grad, 100 * x.exp())

# %%
# The second is memory. The result holds its node, and the node now holds the result, a circle that only Python's
# garbage collector can break. Until it comes by, every call keeps its tensors. With ``save_for_backward`` there is no
# such circle.


# sphinx_gallery_start_ignore
class Keep(Function):
    @staticmethod
    def forward(ctx, x, value):
        ctx.save_for_backward(x, value)
        return x.clone()


refused = []
for value in (3.0, x.shape, (x, x), x.detach().numpy(), None, torch.ones(2)):
    try:
        Keep.apply(x, value)
    except TypeError:
        refused.append(value)
assert len(refused) == 4 and Keep.apply(x, None).requires_grad
try:
    y = Power.apply(torch.tensor(2.0, requires_grad=True), 3)
    y.backward()
    y.grad_fn.saved_tensors
except RuntimeError as error:
    assert "after they have already been freed" in str(error)
    assert y.grad_fn.exponent == 3
# sphinx_gallery_end_ignore
gc.disable()
y = Exp.apply(x)
reference = weakref.ref(y)
del y
print("still there?", reference() is not None)
gc.collect()
print("and after the collector came by?", reference() is not None)
gc.enable()
assert reference() is None


# sphinx_gallery_start_ignore
class SavedExp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y


gc.disable()
outputs = [SavedExp.apply(x), Exp.apply(x)]
references = [weakref.ref(output) for output in outputs]
outputs.clear()
assert [reference() is not None for reference in references] == [False, True]
gc.enable()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_context_methods.py`: all that ``ctx`` can do, and what the attributes cost
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: a custom function from the start
# - `save_for_backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html>`__ in
#   PyTorch's reference
