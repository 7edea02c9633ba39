r"""
ctx: save_for_backward, mark_dirty, needs_input_grad
====================================================

.. index::
   ! single: save_for_backward can only save variables, but argument 1 is of type int
   ! single: save_for_backward can only save input or output tensors
   ! single: number or shape needed in backward of a custom Function
   ! single: list of tensors saved in a custom Function
   single: saved_tensors; in a custom backward

.. in-short::

   In your own ``autograd.Function``, ``ctx``, a ``FunctionCtx``, carries things to ``backward``. Give each tensor that it
   needs to ``ctx.save_for_backward(...)``. Numbers, shapes and strings may be attributes of ``ctx``. If ``forward`` writes to
   an input, call ``ctx.mark_dirty(x)`` and return ``x``. Code that forgets one of these calls often runs, but with a wrong
   gradient or with growing memory.
"""

# %%
# Which call do you need?
# -----------------------
#
# .. list-table::
#    :header-rows: 1
#    :widths: 28 38 34
#
#    * - if
#      - use
#      - without it
#    * - ``backward`` needs a tensor
#      - ``save_for_backward(t)``
#      - memory can grow, and an overwritten value goes unnoticed
#    * - ``forward`` writes to an input
#      - ``mark_dirty(x)``, and return ``x``
#      - the gradient can be wrong
#    * - a float output should get no gradient
#      - ``mark_non_differentiable(mask)``
#      - a loss of it can silently give gradients of zero
#    * - a loss can leave out an output
#      - ``set_materialize_grads(False)``
#      - ``backward`` gets zeros in place of ``None``
#    * - an argument may be frozen
#      - ``needs_input_grad``
#      - its gradient can be computed for nothing

# %%
# The problem: memory grows with each step
# ----------------------------------------
# For :math:`x > 0` the derivative of :math:`y = x^{1.5}` is :math:`1.5 \, y / x`, so this ``backward`` uses the input and the
# output. ``setup_context``, which runs after ``forward``, keeps them as attributes. The gradient is right, but in the loop
# below the memory grows.

import textwrap

import torch


class PowerOnCtx(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**1.5

    @staticmethod
    def setup_context(ctx, inputs, output):
        (ctx.x,), ctx.y = inputs, output

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 1.5 * ctx.y / ctx.x


# %%
# ``Power`` gives both to ``save_for_backward``, and its ``backward`` reads them from ``ctx.saved_tensors``:


class Power(PowerOnCtx):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * 1.5 * y / x


# %%
# .. how-measured:: count_alive_outputs() counts the outputs whose memory of 1 MB is not freed after each step, with Python's
#    garbage collector off. The last count follows a collection.

import gc
import weakref

import matplotlib.pyplot as plt
from torch.multiprocessing.reductions import StorageWeakRef


def count_alive_outputs(function):
    leaf = torch.full((250_000,), 4.0, requires_grad=True)  # 1 MB
    counts, outputs = [], []
    for _ in range(20):
        y = function.apply(leaf)
        y.sum().backward()
        outputs.append(StorageWeakRef(y.untyped_storage()))
        del y
        counts.append(sum(not output.expired() for output in outputs))
    gc.collect()
    return [*counts, sum(not output.expired() for output in outputs)]


def draw_memory_over_steps(*functions):
    gc.disable()
    megabytes = {one.__name__: count_alive_outputs(one) for one in functions}
    gc.enable()
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    styles = {"Power": ("o--", "#2563eb"), "PowerOnCtx": ("s-", "#c2410c")}
    for name, (style, color) in styles.items():
        ax.plot(range(1, 22), megabytes[name], style, color=color, label=name)
    ax.set(xlabel="step, with a garbage collection after step 20", ylabel="MB alive")
    ax.set_xticks([1, 5, 10, 15, 20])
    ax.set_title("Here, an output kept as an attribute stays until it is collected")
    ax.legend()
    return megabytes


# %%
# Both run the same loop of forward and backward:

megabytes = draw_memory_over_steps(Power, PowerOnCtx)

# figure: Megabytes of outputs alive after each of 20 steps. For Power the line stays at zero. For PowerOnCtx it rises
#   by one with each step to 20, and falls to zero after the garbage collection at the end.

# sphinx_gallery_start_ignore
assert megabytes == {"Power": [0] * 21, "PowerOnCtx": [*range(1, 21), 0]}
_inputs = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
for function in (Power, PowerOnCtx):
    assert torch.autograd.gradcheck(function.apply, _inputs)
gc.collect()
assert gc.isenabled()


class _SinCos(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        if _SinCos.as_attributes:
            ctx.sin, ctx.cos = output
        else:
            ctx.save_for_backward(*output)

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        return grad_sin


def _nodes_left():
    _sin, _cos = _SinCos.apply(torch.ones(3, requires_grad=True))
    _node = weakref.ref(_sin.grad_fn)
    del _sin, _cos
    gc.collect()
    return _node() is not None


_SinCos.as_attributes = False
assert not _nodes_left()
_SinCos.as_attributes = True
assert _nodes_left()
# sphinx_gallery_end_ignore

# %%
# The output refers to its node as ``grad_fn``. The node is ``ctx``, and refers to its attributes. If one of them is the output,
# the two refer to each other, and stay until Python's garbage collector finds them, with two such outputs for good.
# ``save_for_backward`` keeps outputs without this cycle.

# %%
# mark_dirty: forward wrote to its input
# --------------------------------------
# ``Double`` and ``SilentDouble`` write to their input and return it. Only ``Double`` marks it.


class Double(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


class SilentDouble(Double):
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass


# %%
# Use ``a`` afterwards, as after any in-place call. With ``x`` at 3, ``a`` is now 6, and the right gradient of ``z`` is 2.

x = torch.tensor(3.0, requires_grad=True)
gradients = []

for function in (Double, SilentDouble):
    a = x * 1
    old, same = a.grad_fn, function.apply(a) is a
    z = a + 1
    (gradient,) = torch.autograd.grad(z, x, retain_graph=True)
    gradients.append(gradient.item())
    print(f"{function.__name__:<12}  a = {a.item()}, returned a itself: {same}")
    print(f"{'':<12}  a.grad_fn: {a.grad_fn.name()}, gradient {gradient.item()}")
    assert same == (a.grad_fn is not old) == (function is Double)
assert gradients == [2, 1]

# graph: z -- Without mark_dirty: the value of a was doubled, but its node still says x * 1

# sphinx_gallery_start_ignore
assert a.grad_fn.name() == "MulBackward0" and a.item() == 6 and z.item() == 7
# sphinx_gallery_end_ignore

# %%
# With ``mark_dirty``, ``a`` gets the new node. Without it, ``a`` keeps its old node, and the doubling is missing from its
# graph.

# %%
# mark_non_differentiable: an output without a gradient
# -----------------------------------------------------
# ``Positive`` returns ``x * mask`` and the mask, which is 1 where ``x > 0`` and 0 elsewhere. The mask has no gradient. But it
# is a float tensor, so without the mark it requires grad. For a boolean or integer output, leave the mark out.


class Positive(torch.autograd.Function):
    @staticmethod
    def forward(x):
        mask = (x > 0).to(x.dtype)
        return x * mask, mask

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, grad_values, grad_mask):
        print("backward got", grad_values, "and", grad_mask)
        (mask,) = ctx.saved_tensors
        return grad_values * mask


class UnmarkedPositive(Positive):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[1])


# %%
# This loss only counts the positive entries, so it cannot train ``x``. With the mark, ``backward()`` raises an error. Without
# it, backward runs, but ``x.grad`` is zero.

for function in (Positive, UnmarkedPositive):
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    values, mask = function.apply(x)
    print(f"{function.__name__}: mask.requires_grad {mask.requires_grad}")
    try:
        mask.sum().backward()
        print("x.grad =", x.grad.tolist())
    except RuntimeError as error:
        refused = str(error)
        print(f"RuntimeError: {refused}\n")
assert x.grad.tolist() == [0, 0]

# sphinx_gallery_start_ignore
assert "does not require grad and does not have a grad_fn" in refused
assert mask.requires_grad and not Positive.apply(x)[1].requires_grad


class _Sort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, indices = x.sort()
        return values, indices, x > 0

    @staticmethod
    def backward(ctx, *gradients):
        return gradients[0]


assert [output.requires_grad for output in _Sort.apply(x)] == [True, False, False]
# sphinx_gallery_end_ignore

# %%
# set_materialize_grads: None instead of zeros
# --------------------------------------------
# In the output above, ``backward`` got zeros for the values, because the loss used only the mask. After
# ``set_materialize_grads(False)``, it gets ``None``, which saves work for large outputs. The loss below leaves out the mask.


class LeanPositive(Positive):
    @staticmethod
    def setup_context(ctx, inputs, output):
        Positive.setup_context(ctx, inputs, output)
        ctx.set_materialize_grads(False)


for function in (Positive, LeanPositive):
    x.grad = None
    values, mask = function.apply(x)
    values.sum().backward()

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [0, 1]
# sphinx_gallery_end_ignore

# %%
# If your ``backward`` uses a gradient that can be ``None``, check first, because ``None * mask`` raises a ``TypeError``.

# %%
# needs_input_grad: skip the gradient of a frozen weight
# -------------------------------------------------------
# ``needs_input_grad`` has a boolean for each argument. Where it is ``False``, this ``backward`` returns ``None``.


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return torch.mm(x, w)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        print("needs_input_grad:", ctx.needs_input_grad)
        # for complex numbers, .mH in place of .T
        grad_x = grad_output @ w.T if ctx.needs_input_grad[0] else None
        grad_w = x.T @ grad_output if ctx.needs_input_grad[1] else None
        return grad_x, grad_w


# %%
# Two calls, and what ``backward`` sees:

x = torch.ones(2, 3, requires_grad=True)
w = torch.ones(3, 2, requires_grad=True)

print("w is frozen")
MatMul.apply(x, w.detach()).sum().backward()
print("only the gradient of x is asked for")
(gradient,) = torch.autograd.grad(MatMul.apply(x, w).sum(), x)

# sphinx_gallery_start_ignore
import contextlib


class _Probe(MatMul):
    got = []

    @staticmethod
    def backward(ctx, grad_output):
        _Probe.got.append(ctx.needs_input_grad)
        return grad_output @ w.detach().T, None


_Probe.apply(x, w.detach()).sum().backward()
torch.autograd.grad(_Probe.apply(x, w).sum(), x)
assert _Probe.got == [(True, False), (True, True)]


class _Adjoint(MatMul):
    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w.mH, x.mH @ grad_output


_pair = [torch.randn(2, 2, dtype=torch.cdouble, requires_grad=True) for _ in "xw"]
assert torch.autograd.gradcheck(_Adjoint.apply, _pair)
_factors = [torch.randn(shape, dtype=torch.float64) for shape in ((2, 3), (3, 4))]
with contextlib.redirect_stdout(None):
    assert torch.autograd.gradcheck(
        MatMul.apply, [f.requires_grad_() for f in _factors]
    )
# sphinx_gallery_end_ignore

# %%
# The booleans say which arguments required grad when ``apply`` ran, whatever the call of ``torch.autograd.grad`` asks for
# (`pytorch#174017 <https://github.com/pytorch/pytorch/issues/174017>`__). So the second call computed the product for ``w`` in
# vain.

# %%
# What people get wrong
# ---------------------
# **Trusting an attribute.** If the input is overwritten before backward, the attribute gives a wrong gradient.
# ``save_for_backward`` notices this write, by the :ref:`version <sphx_glr_gallery_differentiation_inplace_and_versions.py>` of
# the tensor. (Neither notices a write through ``.data`` or NumPy.)

for function in (PowerOnCtx, Power):
    leaf = torch.tensor(4.0, requires_grad=True)
    x = leaf * 1
    y = function.apply(x)
    with torch.no_grad():
        x.fill_(100)
    try:
        y.backward()
        print(f"{function.__name__}: gradient {leaf.grad.item():.2f}, right is 3")
    except RuntimeError as error:
        message = f"{function.__name__}: {str(error).partition(' Hint')[0]}"
        print(textwrap.fill(message, 88))

# sphinx_gallery_start_ignore
assert message.startswith("Power: ") and "modified by an inplace operation" in message
assert leaf.grad is None
for function in (Power, PowerOnCtx):
    _leaf = torch.tensor(4.0, requires_grad=True)
    assert torch.autograd.grad(function.apply(_leaf), _leaf)[0].item() == 3
for _write in (lambda x: x.data.fill_(100), lambda x: x.detach().numpy().fill(100)):
    _x = _leaf * 1
    _y = Power.apply(_x)
    _write(_x)
    assert abs(torch.autograd.grad(_y, _leaf)[0].item() - 0.12) < 1e-6
# sphinx_gallery_end_ignore

# %%
# **Returning a copy of an overwritten input.** A tensor that you mark as dirty has to be an output:


class ReturnsCopy(Power):
    @staticmethod
    def forward(x):
        return x.mul_(2).clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(*inputs)


try:
    ReturnsCopy.apply(torch.tensor(3.0, requires_grad=True) * 1)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", textwrap.fill(message, 74))

# sphinx_gallery_start_ignore
assert "not returned" in message
# sphinx_gallery_end_ignore

# %%
# **An intermediate value in** ``save_for_backward``. This is allowed, but then :ref:`the second derivative
# <sphx_glr_gallery_functions_double_backward.py>` can be silently wrong.

# %%
# save_for_backward can only save variables
# -----------------------------------------
# *Variables* is the old word for tensors. A number, a shape, a list or a NumPy array raises:


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


try:
    Scaled.apply(torch.tensor(2.0, requires_grad=True), 3)
except TypeError as error:
    message = str(error)
    print("TypeError:", message)

# sphinx_gallery_start_ignore
import traceback

assert message.endswith("can only save variables, but argument 1 is of type int")


def _saves(*values):
    """What is said if a Function of the older form saves these values, and where."""

    class Saving(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, *values)
            return x.clone()

    try:
        Saving.apply(x)
    except TypeError as error:
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        assert "forward" not in frames and str(error).startswith(message[:55])
        return False
    return True


assert not any(map(_saves, (3, 2.0, x.shape, (x, x), [x], x.detach().numpy())))
assert _saves(None)
# sphinx_gallery_end_ignore

# %%
# The traceback ends at ``apply``. The line to change is in ``setup_context`` (or in a ``forward`` with ``ctx``): ``argument 1``
# is counted from 0 there. Keep what is no tensor as an attribute, and return ``None`` as its gradient. For a list of tensors,
# write ``forward(x, *weights)`` and ``Weighted.apply(x, *weights)``: a tensor inside of a list gets no gradient.


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.factor = inputs

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None


x = torch.tensor(2.0, requires_grad=True)
Scaled.apply(x, 3).backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad == 3


class _Weighted(torch.autograd.Function):
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


_weights = [torch.tensor(w, requires_grad=True) for w in (5.0, 7.0)]
_grads = torch.autograd.grad(_Weighted.apply(x, *_weights), [x, *_weights])
assert _grads == (12, 2, 2)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``MatMul`` saves both factors, even when one of them is frozen. Which tensor is then saved for nothing?
#
# .. solution::
#
# The gradient of each factor is computed from the *other* one. So if ``w`` is frozen, leave out ``x``. ``needs_input_grad`` is
# there already in ``setup_context``, and ``save_for_backward`` takes ``None``.


class LeanMatMul(MatMul):
    @staticmethod
    def setup_context(ctx, inputs, output):
        (x, w), (needs_x, needs_w) = inputs, ctx.needs_input_grad
        ctx.save_for_backward(x if needs_w else None, w if needs_x else None)


x = torch.ones(2, 3, requires_grad=True)
y = LeanMatMul.apply(x, torch.ones(3, 2))
saved = y.grad_fn.saved_tensors
print("saved:", [s if s is None else tuple(s.shape) for s in saved])
(gradient,) = torch.autograd.grad(y.sum(), x)
assert torch.equal(gradient, torch.full((2, 3), 2.0))

# sphinx_gallery_start_ignore
assert saved[0] is None and saved[1].shape == (3, 2)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_double_backward.py`, what may be saved if the gradient is differentiated.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: an output as an attribute, changed in place.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, what backward frees.
# - In PyTorch's reference: `FunctionCtx
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html>`__ and
#   `Extending PyTorch <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
