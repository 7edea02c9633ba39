r"""
Double backward of a custom Function
====================================

.. in-short::

   A gradient penalty differentiates your ``backward`` too, as does ``torch.autograd.functional.hessian``. Save only tensors
   that are inputs or outputs of ``forward``, for example ``ctx.save_for_backward(x)``. Compute the rest again in ``backward``.
   A value computed inside ``forward`` usually comes back as a constant, so the second derivative can be silently wrong. Test it
   with ``gradgradcheck``.
"""

# %%
# The problem: a right gradient, a wrong penalty
# ----------------------------------------------
# You wrote an activation as a Function, ``gradcheck`` passes, and training works. Then you add a penalty on a gradient, and the
# result is wrong. The activation is Swish, :math:`y = x \, \sigma(x)`, which PyTorch has as ``silu``. Its derivative is
# :math:`\sigma + x \, \sigma (1 - \sigma)`, so it is tempting to save the sigmoid:

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


def derivatives(function, at=0.0):
    x = torch.tensor(at, requires_grad=True)
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first.detach(), second


for name, function in {"silu": silu, "Swish": Swish.apply}.items():
    first, second = derivatives(function)
    print(f"{name:<5}  first derivative {first}   second {second}")

# %%
# At 0 both derivatives should be 0.5, and only the first one is right.
#
# .. how-measured:: This code draws second derivatives.

import matplotlib.pyplot as plt


def draw_second_derivatives(functions):
    points = torch.linspace(-6, 6, 121)
    _, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
    colors = ("#2563eb", "#c2410c")
    for (name, function), color in zip(functions.items(), colors, strict=True):
        style = "-" if function is silu else "--"
        second = derivatives(function, points.tolist())[1]
        ax.plot(points, second, style, color=color, label=name)
    ax.set(xlabel="x", ylabel="second derivative")
    ax.set_title("One function, two second derivatives")
    ax.legend()


# %%
# Half of the second derivative at 0 is missing:

draw_second_derivatives({"silu: right": silu, "Swish: wrong": Swish.apply})

# figure: Two curves between -6 and 6. The right one rises to 0.5 at zero and is slightly negative beyond about 2.4 on
#   both sides. The wrong one is half as high at zero and positive everywhere.

# sphinx_gallery_start_ignore
assert derivatives(silu) == (0.5, 0.5) and derivatives(Swish.apply) == (0.5, 0.25)
_points = torch.linspace(-6, 6, 121)
_right, _wrong = (derivatives(f, _points.tolist())[1] for f in (silu, Swish.apply))
assert abs(_right.max() - 0.5) < 1e-6 and abs(_wrong.max() - 0.25) < 1e-6
assert (_right[_points.abs() > 2.45] < 0).all()
assert (_right[_points.abs() < 2.35] > 0).all() and (_wrong > 0).all()
# sphinx_gallery_end_ignore

# %%
# gradgradcheck finds it
# ----------------------
# ``gradcheck`` tests the first derivative and passes. ``gradgradcheck`` moves the input by a small step, and compares the
# change of the gradient with the second derivative from autograd. Run it at several inputs.

inputs = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
ones = torch.ones(2, dtype=torch.float64, requires_grad=True)

print("gradcheck:", gradcheck(Swish.apply, inputs))
try:
    gradgradcheck(Swish.apply, inputs, ones)
except RuntimeError as error:
    message = str(error).strip()
    print(f"{type(error).__name__}: {message}")

# sphinx_gallery_start_ignore
assert gradcheck(Swish.apply, inputs)
assert "Jacobian mismatch for output 0 with respect to input 0" in message
# sphinx_gallery_end_ignore

# %%
# *Numerical* is what the small steps gave, *analytical* is what your Function gave. ``ones`` is the gradient that arrives
# at the output.

# %%
# The fix: save the input, compute again
# --------------------------------------
# With ``create_graph=True``, PyTorch records what this ``backward`` computes from ``x``, so it can be differentiated. This
# costs one more sigmoid, but saves one tensor instead of two.


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


print("second derivative:", derivatives(SwishFromInput.apply)[1].item())
print("gradgradcheck:", gradgradcheck(SwishFromInput.apply, inputs, ones))

# sphinx_gallery_start_ignore
assert derivatives(SwishFromInput.apply) == (0.5, 0.5)
assert gradgradcheck(SwishFromInput.apply, inputs, ones)
assert len(Swish.apply(inputs).grad_fn.saved_tensors) == 2
assert len(SwishFromInput.apply(inputs).grad_fn.saved_tensors) == 1
for _create in (False, True):
    (_g,) = torch.autograd.grad(
        SwishFromInput.apply(inputs),
        inputs,
        torch.ones_like(inputs),
        create_graph=_create,
    )
    assert _g.requires_grad is _create
# sphinx_gallery_end_ignore

# %%
# Why: the steps inside forward are not recorded
# ----------------------------------------------
# PyTorch calls ``forward`` with recording switched off. Then one node connects the output to the input. So ``backward`` gets
# the input back connected. But ``sigma`` is neither input nor output, so it comes back as a constant, without a warning
# (`pytorch#104040 <https://github.com/pytorch/pytorch/issues/104040>`__).

x = torch.tensor(0.5, requires_grad=True)
y = Swish.apply(x)

for name, tensor in zip(("x", "sigma"), y.grad_fn.saved_tensors, strict=True):
    print(f"{name:<5} comes back with requires_grad = {tensor.requires_grad}")

(g,) = torch.autograd.grad(y, x, create_graph=True)

# graph: g -- The recorded backward of Swish: one path leads from x to the gradient, and sigma is a constant in it

# sphinx_gallery_start_ignore
assert [tensor.requires_grad for tensor in y.grad_fn.saved_tensors] == [True, False]
_sigma = torch.sigmoid(x.detach())
_second = torch.autograd.grad(g, x, retain_graph=True)[0]
assert torch.allclose(_second, _sigma * (1 - _sigma))


def _paths(node):
    if hasattr(node, "variable"):
        return int(node.variable is x)
    return sum(_paths(end) for end, _ in node.next_functions if end is not None)


assert _paths(g.grad_fn) == 1


class _View(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.view(-1))
        return (x * x).sum()

    @staticmethod
    def backward(ctx, grad_output):
        (flat,) = ctx.saved_tensors
        return (grad_output * 2 * flat).view(())


_w = torch.tensor(2.0, requires_grad=True)
(_view,) = _View.apply(_w * x).grad_fn.saved_tensors
assert _view.requires_grad and _view.grad_fn is None  # says True, and is cut off
# sphinx_gallery_end_ignore

# %%
# The figure is the record that ``create_graph=True`` made of ``backward``. The gradient depends on ``x`` through ``sigma``
# too, and that path is missing. What is left of the second derivative is :math:`\sigma (1 - \sigma)`.
#
# A *view* of the input that you make in ``forward``, such as ``x.t()``, can be cut off in the same way. Save the tensor itself,
# and make the view in ``backward``.

# %%
# If it is expensive: return it, and save the output
# --------------------------------------------------
# Make the intermediate value a second, differentiable output. Then it comes back connected, and ``backward`` receives a
# gradient for it too. In the second backward, what was missing arrives as this gradient, so your ``backward`` has to use it.


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


def first_output(x):
    return SwishTwoOutputs.apply(x)[0]


print("second derivative:", derivatives(first_output)[1].item())
print("gradgradcheck:", gradgradcheck(first_output, inputs, ones))

# sphinx_gallery_start_ignore
assert derivatives(first_output) == (0.5, 0.5)
assert gradgradcheck(first_output, inputs, ones)
assert all(t.requires_grad for t in first_output(x).grad_fn.saved_tensors)


class _Marked(SwishTwoOutputs):
    @staticmethod
    def setup_context(ctx, inputs, output):
        SwishTwoOutputs.setup_context(ctx, inputs, output)
        ctx.mark_non_differentiable(output[1])


class _Unused(SwishTwoOutputs):
    @staticmethod
    def backward(ctx, grad_output, grad_sigma):
        return SwishTwoOutputs.backward(ctx, grad_output, torch.zeros_like(grad_sigma))


for _wrong in (_Marked, _Unused):
    assert derivatives(lambda x, f=_wrong: f.apply(x)[0]) == (0.5, 0.25)
# sphinx_gallery_end_ignore

# %%
# Forbid it
# ---------
# Autograd cannot differentiate a ``backward`` in NumPy, for example. Put an error where the second derivative would pass: a
# second Function connects the gradient to what it depends on, and raises when it is differentiated.


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


class SwishStrict(SwishFromInput):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            sigma = torch.sigmoid(x)
            gradient = grad_output * (sigma + x * sigma * (1 - sigma))
        return NoSecondDerivative.apply(gradient, grad_output, x)


def penalty_gradient(function):
    w = torch.tensor(2.0, requires_grad=True)
    x = torch.tensor(0.5, requires_grad=True)
    (g,) = torch.autograd.grad(function(w * x), x, create_graph=True)
    ((g - 1) ** 2).backward()
    return w.grad.item()


print("first derivative:", torch.func.grad(SwishStrict.apply)(torch.tensor(0.0)).item())
try:
    penalty_gradient(SwishStrict.apply)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")


# sphinx_gallery_start_ignore
def _refused(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it was not refused")


assert penalty_gradient(_View.apply) == 12.0
assert penalty_gradient(torch.square) == 24.0
assert message == "this Function has no second derivative"
_x = torch.tensor(0.0, requires_grad=True)
_apply, _zero = SwishStrict.apply, torch.tensor(0.0)
# first derivatives work: plain, with create_graph, and under torch.func
SwishStrict.apply(_x).backward()
assert _x.grad.item() == 0.5
assert torch.autograd.grad(_apply(_x), _x, create_graph=True)[0].item() == 0.5
assert torch.func.grad(_apply)(_zero).item() == 0.5
assert torch.func.vjp(_apply, _zero)[1](_zero + 1)[0].item() == 0.5
for _twice in (
    lambda: penalty_gradient(_apply),
    lambda: penalty_gradient(lambda x: _apply(x) ** 2),
    lambda: derivatives(_apply),
    lambda: derivatives(lambda x: _apply(x) ** 2),
    lambda: torch.func.grad(torch.func.grad(_apply))(_zero),
):
    assert _refused(_twice) == "this Function has no second derivative"
# sphinx_gallery_end_ignore

# %%
# The first derivative works with ``backward()``, with ``create_graph=True`` and under ``torch.func.grad``. The penalty raises,
# and so do the second derivative of :math:`y` and ``torch.func.grad`` of ``torch.func.grad``.

# %%
# What people get wrong
# ---------------------
# **Trusting** ``once_differentiable``. This decorator should turn a second backward into an error. It raises one only if the
# gradient that *arrives* at the Function requires grad. In this penalty on the Function's own gradient, the constant 1 arrives,
# and nothing raises:


class SwishOnce(Swish):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return Swish.backward(ctx, grad_output)


functions = {"silu": silu, "Swish": Swish.apply, "SwishOnce": SwishOnce.apply}
for name, function in functions.items():
    print(f"{name:<9}  {penalty_gradient(function):.4f}")

# sphinx_gallery_start_ignore
_tried = [penalty_gradient(f) for f in (silu, Swish.apply, SwishOnce.apply)]
assert [round(value, 4) for value in _tried] == [2.1042, 1.9233, 1.5869]
# sphinx_gallery_end_ignore

# %%
# ``Swish`` and ``SwishOnce`` are both wrong. `Forbid it`_ shows an error that comes in this case too.
#
# **Raising in** ``backward`` **if** ``torch.is_grad_enabled()``. With ``create_graph=True`` or ``torch.func.grad``, that is
# true in the *first* derivative already.
#
# **Calling** ``torch.autograd.grad`` **inside** ``backward`` on inputs of which one depends on another, such as charges on
# positions. It follows that path, and then autograd follows it again (reported in `nvalchemi-toolkit-ops#131
# <https://github.com/NVIDIA/nvalchemi-toolkit-ops/pull/131>`__). ``gradcheck`` and ``gradgradcheck`` can pass. Differentiate
# with respect to a view of each input: ``x.view_as(x)``.
#
# **Looking for a forgotten** ``create_graph=True``. Softplus, :math:`\log(1 + e^x)`, has the derivative :math:`\sigma(x)`. This
# ``forward`` saves it, so ``backward`` returns a constant. The second backward raises the error that comes after a forgotten
# ``create_graph=True``, too:


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
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "does not require grad and does not have a grad_fn" in message
_x = torch.tensor(0.0, requires_grad=True)
(_first,) = torch.autograd.grad(silu(_x), _x)
# create_graph=True was forgotten
assert _refused(lambda: torch.autograd.grad(_first, _x)) == message


class _Enabled(SwishFromInput):
    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise RuntimeError("too early")
        return SwishFromInput.backward(ctx, grad_output)


_x = torch.tensor(0.0, requires_grad=True)
assert torch.autograd.grad(_Enabled.apply(_x), _x)[0] == 0.5
for _first in (
    lambda: torch.autograd.grad(_Enabled.apply(_x), _x, create_graph=True),
    lambda: torch.func.grad(_Enabled.apply)(_x.detach()),
    lambda: torch.func.vjp(_Enabled.apply, _x.detach())[1](_x.detach()),
):
    assert _refused(_first) == "too early"


def _energy(x, charges):
    return (charges * charges * x).sum() + (x.sin() * charges).sum()


class _Charged(torch.autograd.Function):
    viewed = False

    @staticmethod
    def forward(ctx, x, charges):
        ctx.save_for_backward(x, charges)
        return _energy(x, charges)

    @classmethod
    def backward(cls, ctx, grad_output):
        create, inputs = torch.is_grad_enabled(), ctx.saved_tensors
        with torch.enable_grad():
            if not create:  # what the libraries have as a fast path
                inputs = [t.detach().requires_grad_() for t in inputs]
            elif cls.viewed:
                inputs = [t.view_as(t) for t in inputs]
            energy = _energy(*inputs)
        return torch.autograd.grad(energy, inputs, grad_output, create_graph=create)


class _ChargedByViews(_Charged):
    viewed = True


_x = torch.tensor([0.3, -1.0], dtype=torch.float64, requires_grad=True)
_true = _energy(_x, (2 * _x).tanh())
(_true,) = torch.autograd.grad(_true, _x, create_graph=True)
_second = torch.autograd.grad(_true.square().sum(), _x)[0]
for _function, _right in ((_Charged, False), (_ChargedByViews, True)):

    def _composed(x, function=_function):
        return function.apply(x, (2 * x).tanh())

    _apart = (_x, torch.ones_like(_x).requires_grad_())
    for _check in (gradcheck, gradgradcheck):
        assert _check(_function.apply, _apart) and _check(_composed, (_x,))
    (_plain,) = torch.autograd.grad(_composed(_x), _x)
    (_graph,) = torch.autograd.grad(_composed(_x), _x, create_graph=True)
    assert torch.allclose(_plain, _true) and torch.allclose(_graph, _true) is _right
    if _right:
        (_twice,) = torch.autograd.grad(_graph.square().sum(), _x)
        assert torch.allclose(_twice, _second)
# sphinx_gallery_end_ignore

# %%

# %%
# Exercise
# --------
# Repair ``Softplus`` so that ``gradgradcheck`` passes, without a second sigmoid. Hint: write :math:`\sigma(x)` in terms
# of :math:`y`.
#
# .. solution::
#
# From :math:`y = \log(1 + e^x)` follows :math:`e^{-y} = 1 - \sigma(x)`. Save the *output*: it comes back connected. At 0,
# the derivatives are :math:`\frac{1}{2}` and :math:`\frac{1}{4}`.


class SoftplusFromOutput(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.logaddexp(x, torch.zeros_like(x))  # log(e^x + e^0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * -torch.expm1(-y)  # 1 - e^-y, accurate near 0


passed = gradgradcheck(SoftplusFromOutput.apply, inputs, ones)
first, second = derivatives(SoftplusFromOutput.apply)
print(f"first {first:.4f}   second {second:.4f}   gradgradcheck: {passed}")
assert passed and abs(first - 0.5) < 1e-6 and abs(second - 0.25) < 1e-6

# sphinx_gallery_start_ignore
_far = torch.tensor([-80.0, -20.0, -1.0, 20.0, 100.0], requires_grad=True)
_found, _known = (
    (f(_far), *torch.autograd.grad(f(_far).sum(), _far))
    for f in (SoftplusFromOutput.apply, torch.nn.functional.softplus)
)
assert all(map(torch.allclose, _found, _known, [1e-5] * 2, [0.0] * 2))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`, what second derivatives are for, and what they cost.
# - In PyTorch's reference: `torch.autograd.gradgradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html>`__ and
#   `Extending PyTorch <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
