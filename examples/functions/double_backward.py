r"""
Double backward: second derivatives of a custom Function
========================================================

If a gradient is differentiated again, the operations inside your ``backward`` are differentiated too. Then it
matters where the saved tensors come from: inputs and outputs are safe, and a value computed inside ``forward`` is
not. The first derivative is right in both cases, and ``gradcheck`` passes. This page shows the fault, how
``gradgradcheck`` finds it, and three ways to write a Function without it.
"""

# %%
# A right gradient, and a wrong second derivative
# -----------------------------------------------
# Swish is :math:`y = x \, \sigma(x)`. Its derivative contains the sigmoid again, so it is tempting to save that one.
#
# .. math::
#
#    y' = \sigma + x \, \sigma (1 - \sigma)
#
# .. math::
#
#    y'' = \sigma (1 - \sigma) \, (2 + x (1 - 2 \sigma))

import matplotlib.pyplot as plt
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable
from torch.nn.functional import silu


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sigma = torch.sigmoid(x)
        ctx.save_for_backward(x, sigma)
        return x * sigma

    @staticmethod
    def backward(ctx, grad_output):
        x, sigma = ctx.saved_tensors
        return grad_output * (sigma + x * sigma * (1 - sigma))


# %%
# PyTorch has the same function as ``silu``. At 0, the derivatives are 0.5 and 0.5.


def derivatives(function):
    x = torch.tensor(0.0, requires_grad=True)
    (first,) = torch.autograd.grad(function(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    return first.item(), second.item()


for name, function in {"silu": silu, "Swish": Swish.apply}.items():
    first, second = derivatives(function)
    print(f"{name:<5}  first derivative {first}   second {second}")

# sphinx_gallery_start_ignore
assert derivatives(silu) == (0.5, 0.5) and derivatives(Swish.apply) == (0.5, 0.25)
# sphinx_gallery_end_ignore

# %%
# Half of the second derivative is missing, and nothing was raised. Elsewhere the error has a different size:

x = torch.linspace(-6, 6, 121, requires_grad=True)
curves = {}

for name, function in {"silu": silu, "Swish": Swish.apply}.items():
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    (curves[name],) = torch.autograd.grad(first.sum(), x)

_, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.plot(x.detach(), curves["silu"], color="#2563eb", label="silu: right")
ax.plot(x.detach(), curves["Swish"], "--", color="#c2410c", label="Swish: wrong")
ax.set(xlabel="x", ylabel="second derivative")
ax.set_title("One function, two second derivatives")
ax.legend()

# figure: Two curves between -6 and 6. The right one rises to 0.5 at zero and is slightly negative beyond about 2.4 on
#   both sides. The wrong one is half as high at zero and positive everywhere.

# sphinx_gallery_start_ignore
assert (
    abs(curves["silu"].max() - 0.5) < 1e-6 and abs(curves["Swish"].max() - 0.25) < 1e-6
)
_far = x.detach().abs()
assert (curves["silu"][_far > 2.45] < 0).all() and (
    curves["silu"][_far < 2.35] > 0
).all()
assert (curves["Swish"] > 0).all()
# sphinx_gallery_end_ignore

# %%
# Why: nothing inside forward is recorded
# ---------------------------------------
# ``forward`` runs with recording switched off. When it is over, the output is connected to the input by one node. So
# ``backward`` gets the input back as it was, connected. ``sigma`` is neither input nor output: it comes back as a
# constant, and autograd does not warn (`pytorch#104040 <https://github.com/pytorch/pytorch/issues/104040>`__).

x = torch.tensor(0.5, requires_grad=True)
y = Swish.apply(x)

for name, tensor in zip(("x", "sigma"), y.grad_fn.saved_tensors, strict=True):
    print(f"{name:<5} comes back with requires_grad = {tensor.requires_grad}")

(g,) = torch.autograd.grad(y, x, create_graph=True)

# graph: g -- The recorded backward of Swish: one path from x to the gradient, and sigma hangs there as a constant

# sphinx_gallery_start_ignore
assert [tensor.requires_grad for tensor in y.grad_fn.saved_tensors] == [True, False]
_sigma = torch.sigmoid(x.detach())
assert torch.allclose(
    torch.autograd.grad(g, x, retain_graph=True)[0], _sigma * (1 - _sigma)
)
# sphinx_gallery_end_ignore

# %%
# With ``create_graph=True`` the operations of ``backward`` are recorded, and the figure is that record. The gradient
# depends on ``x`` through ``sigma`` too, and that path does not exist. All that is left of the second derivative is
# :math:`\sigma (1 - \sigma)`.

# %%
# gradgradcheck finds it
# ----------------------
# ``gradcheck`` tests the first derivative and is content. ``gradgradcheck`` tests ``backward`` in the same way:
# it moves the input by a small step and compares the change of the gradient with the second derivative.

inputs = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
ones = torch.ones(2, dtype=torch.float64, requires_grad=True)

print("gradcheck:", gradcheck(Swish.apply, inputs))
try:
    gradgradcheck(Swish.apply, inputs, ones)
except RuntimeError as error:
    print(f"{type(error).__name__}: {str(error).strip()}")
    assert "Jacobian mismatch for output 0 with respect to input 0" in str(error)

# %%
# *Numerical* is what the small steps gave, *analytical* is what the second backward gave. On the diagonal, at 0 and
# at 2, they differ. The third argument is the gradient that arrives at the output; without it, a random one is taken.
# Write this test for every Function whose gradient may be differentiated.

# %%
# Cure 1: save the input, compute again
# -------------------------------------
# What ``backward`` computes itself is recorded. It costs one more sigmoid, and it saves memory: one tensor is kept
# instead of two.


class SwishFromInput(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        sigma = torch.sigmoid(x)
        return grad_output * (sigma + x * sigma * (1 - sigma))


# %%
# Cure 2: return it, and save the output
# --------------------------------------
# If the intermediate value is expensive, make it an output. Then it comes back connected, and ``backward`` receives a
# gradient for it too. In the second backward, the missing path arrives there, so that gradient has to be used.


class SwishTwoOutputs(torch.autograd.Function):
    @staticmethod
    def forward(x):
        sigma = torch.sigmoid(x)
        return x * sigma, sigma

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx, grad_output, grad_sigma):
        x, sigma = ctx.saved_tensors
        slope = sigma * (1 - sigma)
        return grad_output * (sigma + x * slope) + grad_sigma * slope


# %%
# The caller takes the first output. Both cures give the right number and pass the test.

cures = {
    "SwishFromInput": SwishFromInput.apply,
    "SwishTwoOutputs": lambda x: SwishTwoOutputs.apply(x)[0],
}
for name, function in cures.items():
    print(f"{name:<15}  second derivative {derivatives(function)[1]}", end="")
    print("   gradgradcheck:", gradgradcheck(function, inputs, ones))
    assert derivatives(function) == (0.5, 0.5)

y = cures["SwishTwoOutputs"](x)
for name, tensor in zip(("x", "sigma"), y.grad_fn.saved_tensors, strict=True):
    print(f"{name:<5} comes back with requires_grad = {tensor.requires_grad}")

# sphinx_gallery_start_ignore
assert all(gradgradcheck(function, inputs, ones) for function in cures.values())
assert all(tensor.requires_grad for tensor in y.grad_fn.saved_tensors)
# sphinx_gallery_end_ignore

# %%
# Both are written with ``setup_context``, and not by chance: it receives the inputs and the output and nothing else,
# so an intermediate value does not get there unless it is returned.

# %%
# Cure 3: forbid it
# -----------------
# Some backward passes cannot be differentiated: they leave PyTorch, or call a kernel that has no derivative of its
# own. ``once_differentiable`` turns a second backward into an error, with one exception that is shown below.


class SwishOnce(Swish):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return Swish.backward(ctx, grad_output)


x = torch.tensor(0.5, requires_grad=True)
loss = SwishOnce.apply(x) ** 2
(g,) = torch.autograd.grad(loss, x, create_graph=True)
try:
    g.backward()
except RuntimeError as error:
    print(f"RuntimeError:\n  {error}")
    assert "marked with @once_differentiable" in str(error)

# %%
# What people get wrong
# ---------------------
# **Trusting once_differentiable.** It raises only if the gradient that *arrives* requires a gradient, as above, where
# :math:`2y` arrives. If the Function is the last step, what arrives is a constant 1, and no error is set up. Here a
# weight is trained with a penalty on a gradient:


def penalty_gradient(function):
    w = torch.tensor(2.0, requires_grad=True)
    x = torch.tensor(0.5, requires_grad=True)
    (g,) = torch.autograd.grad(function(w * x), x, create_graph=True)
    ((g - 1) ** 2).backward()
    return w.grad.item()


tried = {"silu": silu, "Swish": Swish.apply, "SwishOnce": SwishOnce.apply}
gradients = {name: penalty_gradient(function) for name, function in tried.items()}
print({name: round(gradient, 4) for name, gradient in gradients.items()})

# sphinx_gallery_start_ignore
assert abs(gradients["silu"] - 2.1042) < 1e-4
assert abs(gradients["Swish"] - 1.9233) < 1e-4
assert abs(gradients["SwishOnce"] - 1.5869) < 1e-4
# sphinx_gallery_end_ignore

# %%
# ``silu`` is right, and ``SwishOnce`` is wrong without an error. Put the error where the second derivative would
# pass: a second Function connects the gradient to the inputs, and raises when it is differentiated.


class NoSecondDerivative(torch.autograd.Function):
    @staticmethod
    def forward(gradient, *depends_on):
        return gradient.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        raise RuntimeError("this Function has no second derivative")


class SwishStrict(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            sigma = torch.sigmoid(x)
            gradient = grad_output * (sigma + x * sigma * (1 - sigma))
        return NoSecondDerivative.apply(gradient, grad_output, x)


try:
    penalty_gradient(SwishStrict.apply)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    message = str(error)

# sphinx_gallery_start_ignore
assert message == "this Function has no second derivative"
_x = torch.tensor(0.0, requires_grad=True)
SwishStrict.apply(_x).backward()
assert _x.grad.item() == 0.5
_apply, _zero = SwishStrict.apply, torch.tensor(0.0)
# first derivatives: all of them work, with create_graph and under torch.func
assert torch.autograd.grad(_apply(_x), _x, create_graph=True)[0].item() == 0.5
assert torch.func.grad(_apply)(_zero).item() == 0.5
assert torch.func.vjp(_apply, _zero)[1](_zero + 1)[0].item() == 0.5
_raised = []
for _second in (
    lambda: penalty_gradient(_apply),
    lambda: derivatives(_apply),
    lambda: derivatives(lambda x: _apply(x) ** 2),
    lambda: torch.func.grad(torch.func.grad(_apply))(_zero),
):
    try:
        _second()
    except RuntimeError as error:
        _raised.append(str(error))
assert _raised == ["this Function has no second derivative"] * 4


class _Enabled(Swish):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("too early")
        return grad_output


try:
    torch.func.grad(_Enabled.apply)(_zero)
except RuntimeError as error:
    _raised.append(str(error))
assert _raised[4:] == ["too early"]
# sphinx_gallery_end_ignore

# %%
# The first derivative still works, also with ``create_graph=True`` and under ``torch.func.grad``. Do not raise in
# ``backward`` itself when ``torch.is_grad_enabled()`` is true: ``torch.func.grad`` records in its backward, so there the
# *first* derivative would raise.

# %%
# **An error that speaks of something else.** Softplus, :math:`\log(1 + e^x)`, has the derivative :math:`\sigma(x)`.
# If that is what was saved, the gradient depends on no input at all, and the second backward complains.


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sigma = torch.sigmoid(x)
        ctx.save_for_backward(sigma)
        return -torch.log(1 - sigma)

    @staticmethod
    def backward(ctx, grad_output):
        (sigma,) = ctx.saved_tensors
        return grad_output * sigma


try:
    derivatives(Softplus.apply)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "does not require grad and does not have a grad_fn" in str(error)

# sphinx_gallery_start_ignore


def _square_second(function):
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(function(x) ** 2, x, create_graph=True)
    return torch.autograd.grad(first, x)[0].item()


_right = _square_second(torch.nn.functional.softplus)
assert abs(_square_second(Softplus.apply) - _right) > 0.1
# sphinx_gallery_end_ignore

# %%
# The message is the one for a forgotten ``create_graph``. With :math:`y^2` in place of :math:`y` there is no error,
# and a wrong number.

# %%
# Exercise
# --------
# Mend ``Softplus`` so that ``gradgradcheck`` passes, without a second sigmoid. Hint: write :math:`\sigma(x)` in terms
# of :math:`y`.
#
# .. solution::
#
# From :math:`y = \log(1 + e^x)` follows :math:`e^{-y} = 1 - \sigma(x)`. Save the *output*: it comes back connected.


class SoftplusFromOutput(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.log1p(torch.exp(x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - torch.exp(-y))


# %%
# At 0, the derivatives are :math:`\frac{1}{2}` and :math:`\frac{1}{4}`.

passed = gradgradcheck(SoftplusFromOutput.apply, inputs, ones)
first, second = derivatives(SoftplusFromOutput.apply)
print(f"first {first:.4f}   second {second:.4f}   gradgradcheck: {passed}")
assert passed and abs(first - 0.5) < 1e-6 and abs(second - 0.25) < 1e-6

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_functions_gradcheck.py`, how the test works, and when to believe it.
# - Next: :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`, a Function under ``vmap`` and ``jvp``.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`, what second derivatives are for, and what they cost.
# - In PyTorch's reference: `torch.autograd.gradgradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html>`__ and
#   `Extending PyTorch <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
