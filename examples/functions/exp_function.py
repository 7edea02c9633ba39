r"""
How to write a custom autograd Function
=======================================

.. in-short::

   Subclass ``torch.autograd.Function``: ``forward`` computes the value, ``setup_context`` saves what is needed later,
   ``backward`` turns the gradient of the output into the gradient of the input. Call it as ``Exp.apply(x)``, and
   check your derivative with ``torch.autograd.gradcheck``. If ``torch.compile`` must treat your external code as one step, use
   ``torch.library.custom_op`` instead.
"""

# %%
# The problem: autograd does not see your computation
# ---------------------------------------------------
# One step of your model runs in NumPy or in a solver (below, ``np.exp``). ``x.numpy()`` raises ``Can't call
# numpy() on Tensor that requires grad``. ``x.detach().numpy()`` works, but then no gradient reaches ``x`` through this step:

import math

import numpy as np
import torch

x = torch.tensor([1.0], requires_grad=True)
y = torch.from_numpy(np.exp(x.detach().numpy()))
print(y, y.requires_grad)

# sphinx_gallery_start_ignore
_raised = []
try:
    x.numpy()
except RuntimeError as error:
    _raised.append(str(error))
assert (
    len(_raised) == 1
    and "Can't call numpy() on Tensor that requires grad" in _raised[0]
)
assert y.grad_fn is None
# sphinx_gallery_end_ignore

# %%
# With a Function, the step becomes one node of the graph. ``backward`` runs after ``forward`` has returned. What it needs is
# kept in ``ctx``:
#
# .. how-measured:: This code draws the three methods, and what goes from one to another.

import matplotlib.pyplot as plt


def draw_parts_of_a_function():
    _, ax = plt.subplots(figsize=(7, 2.3), layout="constrained")
    ax.set(xlim=(0, 10), ylim=(0, 4), title="What goes where in Exp, below")
    ax.axis("off")
    edge = {"boxstyle": "round,pad=0.5", "fc": "none", "ec": "#2563eb"}
    texts = {"forward": (5, 3.2), "backward": (5, 0.7)}
    for name, place in texts.items():
        ax.text(*place, name, ha="center", va="center", bbox=edge)
    saved = {**edge, "fc": "none", "ec": "#c2410c"}
    ax.text(8, 1.95, "ctx: saved tensors", ha="center", va="center", bbox=saved)
    arrows = [
        ((0.9, 3.2), (4.1, 3.2), "x"),
        ((5.9, 3.2), (9.5, 3.2), "y"),
        ((9.5, 0.7), (6.0, 0.7), "grad_output"),
        ((4.0, 0.7), (0.9, 0.7), "gradient of x"),
        ((7.7, 3.2), (7.7, 2.4), "setup_context"),
        ((7.0, 1.5), (5.9, 1.0), ""),
    ]
    for start, end, text in arrows:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#64748b"})
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.15
        upright = start[0] == end[0]
        shift = -0.1 if upright else 0
        align = "right" if upright else "center"
        ax.text(middle[0] + shift, middle[1] - upright * 0.4, text, ha=align)


# %%
# In this order:

draw_parts_of_a_function()

# figure: Two boxes, forward above and backward below. x goes into forward and y comes out. From there setup_context leads
#   down to a box named ctx, saved tensors, and an arrow leads on to backward. There grad_output comes in from the right
#   and the gradient of x leaves to the left.

# %%
# A Function for the exponential
# ------------------------------
# :math:`e^x` is its own derivative, so save the *output*. ``forward`` may use NumPy, because autograd does not record inside
# it. ``cpu()`` and ``to(x)`` are for a GPU. At 1, value and gradient are :math:`e`:


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.as_tensor(np.exp(x.cpu().numpy())).to(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


x = torch.tensor(1.0, requires_grad=True)
y = Exp.apply(x)
y.backward()
print(f"y = {y.item():.4f}   dy/dx = {x.grad.item():.4f}")

inputs = torch.tensor([-2.0, 0, 1.5], dtype=torch.float64, requires_grad=True)
print("gradcheck:", torch.autograd.gradcheck(Exp.apply, inputs))

# sphinx_gallery_start_ignore
assert math.isclose(x.grad.item(), math.e, rel_tol=1e-6) and torch.equal(
    x.grad, y.detach()
)
assert torch.autograd.gradcheck(Exp.apply, inputs)
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    single = inputs.detach().float().requires_grad_()
    assert not torch.autograd.gradcheck(Exp.apply, single, raise_exception=False)
# sphinx_gallery_end_ignore

# %%
# ``gradcheck`` moves each number of ``inputs`` by a small step and compares the change of the output with your ``backward``.
# Give it ``float64`` inputs: in ``float32``, rounding usually makes it fail. Now a weight in front of the NumPy step can learn:

weight = torch.tensor(0.0, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.005)
points = torch.tensor([0.2, 0.5, 1.0])
targets = torch.exp(2 * points)

for step in range(101):
    loss = (Exp.apply(weight * points) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:>3}  loss {loss:7.4f}  weight {weight.item():.2f}")

# sphinx_gallery_start_ignore
assert abs(weight.item() - 2) < 0.005 and loss < 1e-3
for _shape in ((), (0,), (1,), (3, 2)):
    _x = torch.randn(_shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Exp.apply, _x)
    assert torch.autograd.gradgradcheck(Exp.apply, _x)
    _t = _x.detach().mT if len(_shape) > 1 else _x.detach()
    assert torch.allclose(Exp.apply(_t), torch.exp(_t))
assert Exp.apply(torch.ones(2, dtype=torch.float16)).dtype == torch.float16
# sphinx_gallery_end_ignore

# %%
# Several inputs: a linear layer
# ------------------------------
# **The rule:** ``backward`` **returns one gradient for each argument of** ``forward``, **in their order.** For a number it
# is ``None``. :ref:`The page on deriving a backward
# <sphx_glr_gallery_functions_derive_a_backward.py>` explains these products:


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(x, weight, bias, scale):
        return scale * (x @ weight.T + bias)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _, ctx.scale = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        g = ctx.scale * grad_output
        # (batch, time, features) becomes (batch * time, features)
        g_rows, x_rows = g.flatten(0, -2), x.flatten(0, -2)
        return g @ weight, g_rows.T @ x_rows, g_rows.sum(0), None


sizes = (5, 3), (2, 3), (2,)
tensors = [torch.randn(size).double().requires_grad_() for size in sizes]
print("gradcheck:", torch.autograd.gradcheck(Linear.apply, (*tensors, 0.5)))

# sphinx_gallery_start_ignore
for _shape, _size in (((4, 4, 3), 4), ((2, 4, 3), 2), ((1, 3), 1), ((0, 3), 2)):
    _x, _w, _b = (
        torch.randn(s, dtype=torch.float64, requires_grad=True)
        for s in (_shape, (_size, 3), (_size,))
    )
    _v = torch.randn(*_shape[:-1], _size, dtype=torch.float64)
    _own = torch.autograd.grad(Linear.apply(_x, _w, _b, 0.5), (_x, _w, _b), _v)
    _plain = torch.autograd.grad(0.5 * (_x @ _w.T + _b), (_x, _w, _b), _v)
    assert all(map(torch.allclose, _own, _plain))
# sphinx_gallery_end_ignore

# %%
# When do you need a Function?
# ----------------------------
# Usually you combine PyTorch's operations, and autograd does the rest. Three reasons for a Function:
#
# - The value comes from outside PyTorch: NumPy, C++, a solver. If ``torch.compile`` has to keep it as one step, :ref:`define an
#   operator <sphx_glr_gallery_functions_custom_operator.py>` instead.
# - The gradient should differ from the true derivative, as in :ref:`gradient reversal
#   <sphx_glr_gallery_functions_change_the_gradient.py>`.
# - You know a derivative that is more stable or needs less memory than the recorded steps.

# %%
# Why: one node, and nothing inside it
# ------------------------------------
# ``Exp.apply(x)`` runs ``forward`` with recording switched off. Then it attaches one node to the output, named after the class.
# This expression uses ``Exp`` and the built-in ``torch.exp``:

x = torch.tensor(1.0, requires_grad=True)
custom = Exp.apply(x)
builtin = torch.exp(x)
z = custom * builtin

# graph: z -- ExpBackward belongs to the class on this page, ExpBackward0 and MulBackward0 are built in

z.backward()
print(f"dz/dx = {x.grad.item():.4f}, by hand 2 e^2 = {2 * math.e**2:.4f}")

# sphinx_gallery_start_ignore
assert math.isclose(x.grad.item(), 2 * math.e**2, rel_tol=1e-6)
for node in (custom.grad_fn, builtin.grad_fn):
    assert node.next_functions[0][0].variable is x
_pair = Exp.apply(x), torch.exp(x)
assert _pair[0].grad_fn.saved_tensors[0].data_ptr() == _pair[0].data_ptr()
assert _pair[1].grad_fn._saved_result.data_ptr() == _pair[1].data_ptr()


class _Probe(Exp):
    seen = []

    @staticmethod
    def forward(x):
        inner = Exp.forward(x)
        _Probe.seen.append((torch.is_grad_enabled(), inner.grad_fn))
        return inner

    @staticmethod
    def backward(ctx, grad_output):
        _Probe.seen.append(ctx)
        return Exp.backward(ctx, grad_output)


_probed = _Probe.apply(x)
torch.autograd.grad(_probed, x)
assert _Probe.seen == [(False, None), _probed.grad_fn]
assert _Probe.seen[1] is _probed.grad_fn and _probed.grad_fn.name() == "_ProbeBackward"


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, others):
        return x + sum(others) + _outside

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


_outside, _listed = torch.ones(2, requires_grad=True)
_of_each = torch.autograd.grad(
    _Sum.apply(x, [_listed]), (x, _outside, _listed), allow_unused=True
)
assert _of_each == (1, None, None)
assert not _Sum.apply(x.detach(), [_listed]).requires_grad
# sphinx_gallery_end_ignore

# %%
# The step inside our ``forward`` left no node. Pass each tensor that needs a gradient to ``apply``, as a separate argument. A
# weight that ``forward`` takes from elsewhere silently gets no gradient through this node.
#
# If your ``backward`` uses NumPy too, a gradient of this gradient is silently wrong. :ref:`Forbid it
# <sphx_glr_gallery_functions_double_backward.py>`.


# sphinx_gallery_start_ignore
class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.as_tensor(3 * x.detach().numpy() ** 2)


_x = torch.tensor([2.0], requires_grad=True)
_y = _Cube.apply(_x) ** 2
(_slope,) = torch.autograd.grad(_y, _x, create_graph=True)
assert _slope == 6 * 2**5
assert torch.autograd.grad(_slope, _x)[0] != 30 * 2**4
# sphinx_gallery_end_ignore

# %%
# The older style: ctx in forward
# -------------------------------
# In the older style ``forward`` takes ``ctx`` and calls ``save_for_backward`` itself. ``backward`` is the same.
# ``torch.func.grad`` refuses this style, so prefer ``setup_context`` for new code. (``torch.func.vmap`` needs more:
# :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`.)


class ExpWithCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = torch.exp(x)
        ctx.save_for_backward(result)
        return result

    backward = Exp.backward


one = torch.tensor(1.0)
print(f"gradient of Exp: {torch.func.grad(Exp.apply)(one).item():.4f}")
try:
    torch.func.grad(ExpWithCtx.apply)(one)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "must override the setup_context staticmethod" in message
assert torch.autograd.gradcheck(ExpWithCtx.apply, inputs)
try:
    torch.func.vmap(Exp.apply)(torch.ones(2))
except RuntimeError as error:
    _raised.append(str(error))
assert "does not have vmap support" in _raised[-1]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Calling an instance or** ``forward``. ``Exp()(x)`` raises an error. ``Linear.forward(...)`` is worse, because it runs:
# autograd records the operations inside, and ignores your ``backward``. The name of the node shows it: ``LinearBackward``
# belongs to the class on this page, ``MulBackward0`` to the last product. Write ``Linear.apply(...)``.

applied, called = Linear.apply(*tensors, 0.5), Linear.forward(*tensors, 0.5)
print("Linear.apply:  ", applied.grad_fn.name())
print("Linear.forward:", called.grad_fn.name())

# sphinx_gallery_start_ignore
assert applied.grad_fn.name() == "LinearBackward"
assert called.grad_fn.name() == "MulBackward0"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        Exp()(x)
    except RuntimeError as error:
        _raised.append(str(error))
assert "Legacy autograd function with non-static forward" in _raised[-1]
assert "should not be instantiated" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# **The wrong number of gradients.** ``forward`` has four arguments, so ``backward`` has to return four values. This one returns
# two:


class LinearWithTwo(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        return Linear.backward(ctx, grad_output)[:2]


try:
    LinearWithTwo.apply(*tensors, 0.5).sum().backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "incorrect number of gradients (expected 4, got 2)" in message
# sphinx_gallery_end_ignore

# %%
# **A tensor as an attribute of ctx.** With ``ctx.result = output``, ``gradcheck`` passes. But if the attribute is changed,
# autograd cannot notice. Multiply the result by 2 in place, and the right gradient is :math:`2e`:


class ExpOnAttribute(Exp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.result = output

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.result


for function in (ExpOnAttribute, Exp):
    x.grad = None
    y = function.apply(x)
    y.mul_(2)
    try:
        y.backward()
        times = x.grad.item() / math.e
        print(f"{function.__name__}: {times:.4f} e instead of 2 e")
    except RuntimeError as error:
        message = str(error)
        print(f"{function.__name__}: RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert torch.autograd.gradcheck(ExpOnAttribute.apply, inputs)
assert "modified by an inplace operation" in message
assert x.grad is None
_y = ExpOnAttribute.apply(x)
_y.mul_(2)
assert math.isclose(torch.autograd.grad(_y, x)[0].item(), 4 * math.e, rel_tol=1e-6)
assert math.isclose(
    torch.autograd.grad(Exp.apply(x) * 2, x)[0].item(), 2 * math.e, rel_tol=1e-6
)
# sphinx_gallery_end_ignore

# %%
# The attribute gives twice the right gradient. With ``save_for_backward`` there is an error instead. The caller's fix is
# ``y = y * 2``.
#
# **A list of tensors.** ``apply`` looks at its own arguments, but never into a list. So the gradient is silently lost:


class Total(torch.autograd.Function):
    @staticmethod
    def forward(*tensors):
        return sum(tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx, gradient):
        return (gradient,) * ctx.count  # one for each argument


class TotalOfList(Total):
    @staticmethod
    def forward(tensors):
        return sum(tensors)


tensors = [torch.ones(2, requires_grad=True) for _ in range(3)]
print("one list:       ", TotalOfList.apply(tensors).requires_grad)
print("three arguments:", Total.apply(*tensors).requires_grad)

# sphinx_gallery_start_ignore
assert (
    not TotalOfList.apply(tensors).requires_grad and Total.apply(*tensors).requires_grad
)
assert not TotalOfList.apply(tuple(tensors)).requires_grad
Total.apply(*tensors).sum().backward()
assert all(torch.equal(tensor.grad, torch.ones(2)) for tensor in tensors)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Write a Function ``Log1p`` for :math:`\log(1 + x)` whose value comes from ``np.log1p``. Which tensor do you save? What are
# value and gradient at 1? Check it with ``gradcheck``.
#
# .. solution::
#
# The derivative is :math:`\frac{1}{1 + x}`, so save the *input*. At 1 the value is :math:`\log 2` and the gradient
# :math:`\frac{1}{2}`.


class Log1p(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.as_tensor(np.log1p(x.cpu().numpy())).to(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x)


x = torch.tensor(1.0, requires_grad=True)
y = Log1p.apply(x)
y.backward()

inputs = torch.tensor([-0.5, 0, 1.5], dtype=torch.float64, requires_grad=True)
checked = torch.autograd.gradcheck(Log1p.apply, inputs)
print(f"y = {y.item():.4f}   dy/dx = {x.grad.item()}   gradcheck: {checked}")
assert math.isclose(y.item(), math.log(2), rel_tol=1e-6)
assert checked and x.grad.item() == 0.5

# sphinx_gallery_start_ignore
assert y.grad_fn.next_functions[0][0].variable is x  # one node for the step in NumPy
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: what autograd returns there.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`: what the nodes of a graph are, and how they are linked.
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`: find the operation behind an error in backward.
# - In PyTorch's reference: `the two styles of forward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.forward.html>`__ and `Extending PyTorch
#   <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
