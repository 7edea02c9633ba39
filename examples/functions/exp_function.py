r"""
How to write a custom torch.autograd.Function
=============================================

A custom ``torch.autograd.Function`` is an operation whose derivative you write yourself: ``forward`` computes the
value, ``backward`` turns the gradient of the output into the gradient of the input. You need one where autograd
cannot see the computation, or where the derivative it would use is not the one you want. For external code that
``torch.compile`` should keep as one step, use ``torch.library.custom_op``. This page writes one for
:math:`e^x`, because every number in it is easy to check.

.. math::

   y = e^{x}, \qquad \frac{\partial y}{\partial x} = e^{x} = y, \qquad x = 1
"""

# %%
# Why: autograd records only its own operations
# ---------------------------------------------
# Compute the exponential with NumPy, and the value is right, but the connection to ``x`` is gone. No operation of
# PyTorch ran, so there was nothing to record.

import math
import warnings

import numpy as np
import torch

x = torch.tensor(1.0, requires_grad=True)
outside = torch.tensor(np.exp(x.item()))

print(f"value {outside.item():.4f}")
print(f"requires_grad {outside.requires_grad}, grad_fn {outside.grad_fn}")

# sphinx_gallery_start_ignore
assert abs(outside.item() - math.e) < 1e-6
assert not outside.requires_grad and outside.grad_fn is None
# sphinx_gallery_end_ignore

# %%
# A Function closes this gap: it hides any computation behind one node of the graph. Write one when
#
# - the value comes from outside PyTorch: NumPy, C++, a solver (if it has to survive ``torch.compile`` or
#   ``torch.export``, :ref:`define an operator <sphx_glr_gallery_functions_functions_and_transforms.py>` instead);
# - the gradient should differ from the true derivative, as in gradient reversal or a straight-through estimator;
# - you know a derivative that is more stable or needs less memory than the recorded steps.
#
# In all other cases, compose PyTorch's own operations. Their derivatives are written already.
#
# Exp, with ctx in forward
# ------------------------
# Both methods are static, since no instance is ever made. ``ctx`` is the context: what ``forward`` leaves there,
# ``backward`` finds again. ``backward`` gets the gradient of the output, multiplies it by the local derivative, and
# returns the gradient of the input.


class ExpWithCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = torch.exp(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


# %%
# What is saved is the *output*. The exponential is its own derivative, so ``backward`` needs one product and no
# second exponential. Had ``forward`` saved ``x``, ``backward`` would have to compute ``torch.exp(x)`` again.
#
# The Function is called through ``apply``, which comes from the base class.

y = ExpWithCtx.apply(x)
y.backward()

print(f"y = {y.item():.4f}   dy/dx = {x.grad.item():.4f}")
assert math.isclose(x.grad.item(), math.e, rel_tol=1e-6)

# %%
# Exp, with setup_context
# -----------------------
# The second style separates the two jobs. ``forward`` takes no ``ctx`` and only computes; ``setup_context`` receives
# the tuple of all inputs and the output, and decides what to save. ``backward`` stays as it was.


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


# %%
# The two styles side by side:

for function in (ExpWithCtx, Exp):
    x.grad = None
    y = function.apply(x)
    y.backward()
    print(f"{function.__name__:<10}   y = {y.item():.4f}   dy/dx = {x.grad.item():.4f}")
    assert torch.equal(x.grad, y.detach())  # exp is its own derivative

# sphinx_gallery_start_ignore
assert math.isclose(y.item(), math.e, rel_tol=1e-6)
assert torch.equal(ExpWithCtx.apply(x), Exp.apply(x))
# sphinx_gallery_end_ignore

# %%
# They agree. Prefer ``setup_context`` for new code: the transforms of ``torch.func`` accept nothing else.

one = torch.tensor(1.0)
print(f"torch.func.grad(Exp.apply)(one) = {torch.func.grad(Exp.apply)(one).item():.4f}")

try:
    torch.func.grad(ExpWithCtx.apply)(one)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "must override the setup_context staticmethod" in str(error)

# %%
# Its node in the graph
# ---------------------
# ``apply`` runs ``forward`` with recording switched off, then attaches one node to the output, named after the class.
# ``torch.exp`` attaches PyTorch's built-in node, whose name ends in a digit. Here one expression uses both.

x = torch.tensor(1.0, requires_grad=True)
custom = Exp.apply(x)
builtin = torch.exp(x)
z = custom * builtin

# graph: z -- One graph, two kinds of node: ExpBackward is the class on this page, ExpBackward0 is built in

for node in (custom.grad_fn, builtin.grad_fn):
    print(f"{node.name():<12}   next: {node.next_functions[0][0].name()}")

# sphinx_gallery_start_ignore
assert custom.grad_fn.name() == "ExpBackward"
assert builtin.grad_fn.name() == "ExpBackward0"
for node in (custom.grad_fn, builtin.grad_fn):
    assert node.next_functions[0][0].name().endswith("AccumulateGrad")
    assert node.next_functions[0][0].variable is x
# sphinx_gallery_end_ignore

# %%
# The ``torch.exp`` inside our ``forward`` left no node of its own: the node of ``Exp`` leads straight to the leaf.
# The node is also the ``ctx`` that ``backward`` receives, so what it saved can be looked at from outside. The
# built-in node made the same choice: it saved its result.

(saved,) = custom.grad_fn.saved_tensors
saved_by_builtin = builtin.grad_fn._saved_result

print(f"saved by Exp:       {saved.item():.4f}")
print("    same memory as custom: ", saved.data_ptr() == custom.data_ptr())
print(f"saved by torch.exp: {saved_by_builtin.item():.4f}")
print("    same memory as builtin:", saved_by_builtin.data_ptr() == builtin.data_ptr())

z.backward()
print(f"dz/dx = {x.grad.item():.4f}, by hand 2 e^2 = {2 * math.e**2:.4f}")

# sphinx_gallery_start_ignore
assert saved.data_ptr() == custom.data_ptr()
assert saved_by_builtin.data_ptr() == builtin.data_ptr()
assert math.isclose(x.grad.item(), 2 * math.e**2, rel_tol=1e-6)


class Probe(torch.autograd.Function):
    seen = []

    @staticmethod
    def forward(x):
        inner = torch.exp(x)
        assert not torch.is_grad_enabled() and inner.grad_fn is None
        return inner

    @staticmethod
    def setup_context(ctx, inputs, output):
        assert len(inputs) == 1 and inputs[0] is x

    @staticmethod
    def backward(ctx, grad_output):
        Probe.seen.append(ctx)
        return grad_output


probed = Probe.apply(x)
torch.autograd.grad(probed, x)
assert Probe.seen == [probed.grad_fn] and Probe.seen[0] is probed.grad_fn
# sphinx_gallery_end_ignore

# %%
# What each node saved is the memory of the result itself. As long as the result is in use anyway, saving it costs
# nothing more.
#
# Check the gradient
# ------------------
# PyTorch takes your ``backward`` at its word. ``torch.autograd.gradcheck`` tests it: it moves every input by a small
# step, and compares the change of the output with what ``backward`` says. Give it ``float64``, because rounding in
# ``float32`` drowns such small changes.

inputs = torch.tensor([-2.0, 0.0, 1.5], dtype=torch.float64, requires_grad=True)

for function in (ExpWithCtx, Exp):
    passed = torch.autograd.gradcheck(function.apply, inputs)
    print(f"{function.__name__:<10}   gradcheck: {passed}")

# sphinx_gallery_start_ignore
assert all(torch.autograd.gradcheck(f.apply, inputs) for f in (ExpWithCtx, Exp))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    single = inputs.detach().float().requires_grad_()
    assert not torch.autograd.gradcheck(Exp.apply, single, raise_exception=False)
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Calling an instance.** ``Exp()(x)`` is how a module is used, and how very old code used Functions. The error
# speaks of a non-static ``forward``, even though ours is static. The fix is ``Exp.apply(x)``.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        Exp()(x)
    except RuntimeError as error:
        print(f"RuntimeError: {error}")
        assert "Legacy autograd function" in str(error)

print(f"{caught[0].category.__name__}: {caught[0].message}")
assert "should not be instantiated" in str(caught[0].message)

# %%
# **Calling forward directly.** With ``setup_context`` this fails silently: the operations inside are recorded one by
# one, and your ``backward`` never runs. The digit in the node's name gives it away. With ``ctx`` in ``forward``,
# Python takes ``x`` for ``ctx``, and reports that an argument is missing.

applied = Exp.apply(x)
bypassed = Exp.forward(x)
print(f"Exp.apply(x):   {applied.grad_fn.name()}")
print(f"Exp.forward(x): {bypassed.grad_fn.name()}")
assert bypassed.grad_fn.name() == "ExpBackward0"

try:
    ExpWithCtx.forward(x)
except TypeError as error:
    print(f"TypeError: {error}")
    assert "missing 1 required positional argument: 'x'" in str(error)

# %%
# **Keyword arguments in apply.** Whether ``Exp.apply(x=x)`` works depends on the release. PyTorch 2.11 answers
# ``apply() takes no keyword arguments``; below is the answer of the release that built this page. Pass arguments by
# position, which works in both.

try:
    outcome = f"{Exp.apply(x=x).item():.4f}"
except TypeError as error:
    outcome = f"TypeError: {error}"

print(f"PyTorch {torch.__version__.split('+')[0]}, Exp.apply(x=x): {outcome}")
# sphinx_gallery_start_ignore
_release = tuple(int(part) for part in torch.__version__.split(".")[:2])
if _release <= (2, 11):
    assert outcome == "TypeError: apply() takes no keyword arguments"
elif _release >= (2, 13):
    assert outcome == "2.7183"
# sphinx_gallery_end_ignore

# %%
# **The wrong number of gradients.** ``backward`` returns one value for each argument of ``forward`` after ``ctx``,
# and that includes arguments that are not tensors. ``factor`` is a number, so it may sit on ``ctx`` as an attribute,
# but its place in the return value has to be filled. The fix is ``return grad_output * ctx.factor, None``.


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor


try:
    Scale.apply(x, 3.0).backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "incorrect number of gradients (expected 2, got 1)" in str(error)

# sphinx_gallery_start_ignore
Scale.backward = staticmethod(lambda ctx, grad_output: (grad_output * ctx.factor, None))
assert torch.autograd.grad(Scale.apply(x, 3.0), x)[0].item() == 3.0
# sphinx_gallery_end_ignore

# %%
# **A tensor as an attribute of ctx.** ``ctx.result = output`` also carries the tensor to ``backward``, and
# ``gradcheck`` passes. What gets lost is a check: autograd no longer knows that ``backward`` needs this tensor
# unchanged.


class ExpOnAttribute(Exp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.result = output

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.result


print(f"gradcheck: {torch.autograd.gradcheck(ExpOnAttribute.apply, inputs)}")

# sphinx_gallery_start_ignore
assert torch.autograd.gradcheck(ExpOnAttribute.apply, inputs)
# sphinx_gallery_end_ignore

# %%
# Now double the result in place: :math:`y = 2 e^x`, and the gradient at 1 is :math:`2e`. ``Exp`` refuses to compute
# with a saved tensor that has changed. ``ExpOnAttribute`` uses the changed one and returns twice the gradient, with
# no error.

for function in (Exp, ExpOnAttribute):
    x.grad = None
    y = function.apply(x)
    y.mul_(2)
    try:
        y.backward()
        gradient = x.grad.item()
        print(f"{function.__name__}: {gradient:.4f}, right is 2e = {2 * math.e:.4f}")
    except RuntimeError as error:
        print(f"{function.__name__}: RuntimeError: {error}\n")
        assert "modified by an inplace operation" in str(error)
assert math.isclose(x.grad.item(), 2 * (2 * math.e), rel_tol=1e-6)  # twice too large

# sphinx_gallery_start_ignore
x.grad = None
y = Exp.apply(x)
y = y * 2
y.backward()
assert math.isclose(x.grad.item(), 2 * math.e, rel_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The fix in the Function is ``save_for_backward`` for every input and output that ``backward`` needs. The fix for a
# caller who then meets the error is to compute out of place: ``y = y * 2``.
#
# Exercise
# --------
# Write a Function ``Log1p`` for :math:`\log(1 + x)` whose value comes from ``np.log1p``, so that autograd
# cannot see it. Which tensor do you save? What are value and gradient at 1? Check it with ``gradcheck``.
#
# .. solution::
#
# The derivative is :math:`\frac{1}{1 + x}`, so save the *input*. At 1 the value is :math:`\log 2` and the gradient
# :math:`\frac{1}{2}`. Recording is off inside ``forward``, so ``x.numpy()`` is allowed although ``x`` requires
# gradients. ``np.asarray`` is there for a tensor without dimensions: NumPy returns a plain number for it.


class Log1p(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.from_numpy(np.asarray(np.log1p(x.numpy())))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x)


# %%
# ``gradcheck`` confirms it at three points.

x = torch.tensor([1.0], requires_grad=True)
y = Log1p.apply(x)
y.backward()

inputs = torch.tensor([-0.5, 0.0, 1.5], dtype=torch.float64, requires_grad=True)
checked = torch.autograd.gradcheck(Log1p.apply, inputs)

print(f"y = {y.item():.4f}   dy/dx = {x.grad.item():.4f}")
print(f"node: {y.grad_fn.name()}   gradcheck: {checked}")
assert math.isclose(y.item(), math.log(2), rel_tol=1e-6)
assert checked and x.grad.item() == 0.5

# sphinx_gallery_start_ignore
_x = torch.tensor(1.0, requires_grad=True)
assert torch.autograd.grad(Log1p.apply(_x), _x)[0].item() == 0.5
assert not isinstance(np.log1p(_x.detach().numpy()), np.ndarray)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`: the memory of ``.grad``.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: what autograd returns there.
# - Next: :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: a backward that is not the derivative, on purpose.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`: what the nodes of a graph are, and how they are linked.
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`: find the operation behind an error in backward.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory, so that results change together.
# - In PyTorch's reference: `the two styles of forward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html>`__ and
#   `Extending PyTorch <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
