r"""
returned an invalid gradient at index 0
=======================================

.. index::
   ! single: returned an incorrect number of gradients (expected 2, got 1)
   ! single: returned a gradient different than None at position 2
   ! single: expected shape compatible with
   ! single: None in the return value of a custom backward
   ! single: backward of a custom Function without a return statement
   ! single: pruned layer fails in backward

.. in-short::

   ``backward`` returns one value for each argument of ``forward``, in the same order: a gradient with the shape and the device
   of the argument, or ``None`` for what has no gradient. Here ``x`` is 2×3, and its gradient was summed to 3.

   .. code-block:: diff

      - of_x = (gradient * scale).sum(0)
      + of_x = gradient * scale

   **Not this:** ``expand`` the gradient to the shape that the message asks for, unless ``forward`` is a sum. The gradient is
   then wrong.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.autograd import Function

# sphinx_gallery_start_ignore
# isort: split
from torch import nn

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
# .. list-table::
#    :header-rows: 1
#    :widths: 45 55
#
#    * - the message names
#      - look at
#    * - ``ScaleBackward``, and ``Scale`` is your class
#      - your ``backward``. ``index 0`` is its value for the first argument that is a tensor.
#    * - ``_RasterizeGaussiansBackward`` or another class of a library
#      - your call. Compare shapes and devices with the library's example. A first size of 0: nothing is left to draw. If the
#        example itself raises, install the library again: another build may be in use.
#    * - ``MmBackward`` or ``AddmmBackward``, without a ``0``
#      - a ``Linear`` on a GPU in PyTorch 1.9, which does not check its input. ``got`` has its ``in_features``, ``expected``
#        the input's size. See :ref:`the CPU's error <sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py>`.
#    * - ``AddmmBackward0`` or another node of PyTorch
#      - often code that changes a size through ``.data``
#    * - your class or a node, and ``forward`` sets a parameter with ``.data =`` (LSQ under DDP)
#      - the parameter. Give it its shape in ``__init__``, and its value by ``.data.copy_(value)`` in a batch *before* DDP, so
#        that all processes get the same.
#    * - ``expected ... [0]`` with DeepSpeed ZeRO-3
#      - a partitioned weight, often used outside its own layer. Call the layer, or take ZeRO-2.
#    * - ``CompiledFunctionBackward``
#      - the same step without ``torch.compile``. If it works, update PyTorch or leave this part uncompiled.
#
# ``got [3]`` is the gradient, ``expected ... [2, 3]`` the argument. ``got []`` in a mean loss: in ``backward``, write
# ``/ x.numel()`` for ``.mean()``, or ``/ len(x)`` if the mean is over samples. For *expected device ... but got cpu*, write
# ``torch.ones_like(x)`` instead of ``torch.ones(2, 3)`` in ``backward``.
#
# Why
# ---
# ``scale`` was broadcast over the two rows, so its gradient is a sum over them. ``x`` was not.

y = Scale.apply(x, scale)

# graph: y -- The gradient for x must be 2×3 as x is, the gradient for scale 3 as scale is

# %%
# The fix
# -------
# **In your own Function**: sum over the dimensions in which the argument was broadcast. Undo ``flatten`` with
# ``reshape_as(x)``, ``t()`` with ``.t()``, top-k with ``torch.zeros_like(x).scatter(dim, index, gradient)``. Run ``gradcheck``.


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


def _made(make, device):
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

    x = torch.ones(2, 3, device=device, requires_grad=True)
    said = _message(lambda: Made.apply(x).sum().backward())
    return said or x.grad


assert _made(lambda gradient, x: torch.ones(2, 3), "meta") == (
    "Function MadeBackward returned an invalid gradient at index 0 - expected device meta but got cpu"
)
for _make in (torch.ones_like, lambda x: x.new_ones(2, 3)):
    assert _made(lambda gradient, x, m=_make: m(x), "meta").shape == (2, 3)


def _shaped(forward, backward):
    class Shaped(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y, ctx.index = forward(x)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return backward(gradient, ctx.saved_tensors[0], ctx.index)

    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    said = _message(lambda: Shaped.apply(x).sum().backward())
    return said or _gradcheck(Shaped.apply, (x,), raise_exception=False)


for _forward, _wrong, _right, _got in (
    (
        lambda x: (2 * x.flatten(), None),
        lambda g, x, _: 2 * g,
        lambda g, x, _: 2 * g.reshape_as(x),
        "[6]",
    ),
    (
        lambda x: (2 * x.t(), None),
        lambda g, x, _: 2 * g,
        lambda g, x, _: 2 * g.t(),
        "[3, 2]",
    ),
    (
        lambda x: x.topk(2, dim=1),
        lambda g, x, _: g,
        lambda g, x, index: torch.zeros_like(x).scatter(1, index, g),
        "[2, 2]",
    ),
    (
        lambda x: (x.square().mean(), None),
        lambda g, x, _: (g * 2 * x).mean(),
        lambda g, x, _: g * 2 * x / x.numel(),
        "[]",
    ),
    (
        lambda x: (x.square().sum(1).mean(), None),
        lambda g, x, _: (g * 2 * x).mean(),
        lambda g, x, _: g * 2 * x / len(x),
        "[]",
    ),
    (
        lambda x: (x.sum(1, keepdim=True), None),
        lambda g, x, _: g,
        lambda g, x, _: g.expand(2, 3),
        "[2, 1]",
    ),
):
    assert f"got {_got} but expected" in _shaped(_forward, _wrong)
    assert _shaped(_forward, _right) is True
_mean = lambda x: (x.square().mean(), None)  # noqa: E731
assert _shaped(_mean, lambda g, x, _: g * 2 * x) is False  # without the division
_turned = lambda x: (2 * x.t(), None)  # noqa: E731
assert _shaped(_turned, lambda g, x, _: 2 * g.reshape_as(x)) is False
_old = torch.rand(2, 5), torch.rand(3, 4)  # an input with 5 features for Linear(4, 3)
assert "cannot be multiplied" in _message(lambda: nn.functional.linear(*_old))


class _Unchecked(Function):  # the gradients of an mm that does not check its sizes
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x[:, : weight.shape[1]] @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ x


_input = _old[0].requires_grad_()
assert "got [2, 4] but expected shape compatible with [2, 5]" in _message(
    _Unchecked.apply(_input, _old[1]).sum().backward
)
# DDP keeps the node of each parameter, and with it the shape
for _length, _fits in ((0, False), (1, True)):
    _step = nn.Parameter(torch.ones(_length))
    _kept_node = _step.view_as(_step).grad_fn.next_functions[0][0]
    if _fits:
        _step.data.copy_(torch.tensor([2.0]))
    else:
        _step.data = torch.tensor([2.0])
    _said = _message(_AnyScale.apply(torch.ones(3), _step).sum().backward)
    assert ("got [1] but expected shape compatible with [0]" not in _said) == _fits
assert _said == "" and _step.grad.tolist() == [3] and _step.tolist() == [2]
_flagged = type(
    "_Flagged",
    (Function,),
    {
        "forward": staticmethod(lambda ctx, flag, x: 2 * x),
        "backward": staticmethod(lambda ctx, grad: (None, grad[0])),
    },
)
_loss = _flagged.apply(True, torch.ones(2, 3, requires_grad=True)).sum()
assert "at index 0 - got [3]" in _message(_loss.backward)
# sphinx_gallery_end_ignore

# %%
# ``(gradient * scale).sum_to_size(x.shape)`` finds the dimensions by itself.
#
# **A node of PyTorch**: pruning scripts give a parameter another size through ``.data``. An output from before the change keeps
# the old shape in its graph.

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
# sphinx_gallery_end_ignore

# %%
# Make new parameters instead, then a new optimizer, scheduler and DDP. Freeze and share again what was frozen or shared. For an
# activation, write ``y = y[:2]``.

layer = nn.Linear(4, 3)
old_output = layer(torch.ones(2, 4))
layer.weight = nn.Parameter(layer.weight.detach()[:2].clone())
layer.bias = nn.Parameter(layer.bias.detach()[:2].clone())
layer(torch.ones(2, 4)).sum().backward()
print("layer.bias.grad:", layer.bias.grad)

# sphinx_gallery_start_ignore
assert layer.weight.grad.shape == (2, 4) and torch.all(layer.bias.grad == 2)
old_output.sum().backward()
assert torch.all(layer.bias.grad == 2)  # the old output has the old parameters
_x = torch.ones(5, 4, requires_grad=True)
_y = 2 * _x
_y.data = _y.data[:3]
assert _message((_y @ torch.ones(4, 2)).sum().backward) == (
    "Function MmBackward0 returned an invalid gradient at index 0 - got [3, 4] "
    "but expected shape compatible with [5, 4]"
)
_y = (2 * _x)[:3]
(_y @ torch.ones(4, 2)).sum().backward()
assert _x.grad[:, 0].tolist() == [4, 4, 4, 0, 0]
# a weight that was empty when its gradient was prepared, as ZeRO-3 keeps it
_part = nn.Linear(4, 3)
_full = [_weight.data for _weight in _part.parameters()]
for _weight in _part.parameters():
    _weight.data = torch.empty(0)
_kept = [w.view_as(w).grad_fn.next_functions[0][0] for w in _part.parameters()]
for _weight, _data in zip(_part.parameters(), _full, strict=True):
    _weight.data = _data
assert _message(_part(torch.ones(2, 4)).sum().backward).endswith("compatible with [0]")
_frozen = nn.Parameter(torch.ones(2), requires_grad=False)
assert nn.Parameter(_frozen.detach()).requires_grad
# what has to be made again: a scheduler of the old optimizer leaves the new one's rate
_decays = [torch.optim.SGD(layer.parameters(), lr=1.0) for _ in range(2)]
_scheduler = torch.optim.lr_scheduler.ExponentialLR(_decays[0], 0.5)
for _decay in _decays:
    _decay.step()
_scheduler.step()
assert [_decay.param_groups[0]["lr"] for _decay in _decays] == [0.5, 1]
# sphinx_gallery_end_ignore

# %%
# returned an incorrect number of gradients
# -----------------------------------------
# ``backward`` returned one value, and ``forward`` has two arguments:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Exp(Function):
        @staticmethod
        def forward(x, scale):
            return torch.exp(scale * x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, gradient):
            (y,) = ctx.saved_tensors
            return gradient * ctx.scale * y

    x = torch.tensor(1.0, requires_grad=True)
    Exp.apply(x, 0.5).backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
_words = "returned an incorrect number of gradients (expected 2, got 1)"
assert raised == [f"function ExpBackward {_words}"]


class _OldExp(Function):
    @staticmethod
    def forward(ctx, x, scale=0.5):
        y = torch.exp(scale * x)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    backward = Exp.backward


class _DefaultExp(Exp):
    @staticmethod
    def forward(x, scale=0.5):
        return torch.exp(scale * x)


assert _message(_OldExp.apply(x, 0.5).backward).endswith(_words)


class _FixedOldExp(_OldExp):
    @staticmethod
    def backward(ctx, gradient):
        return Exp.backward(ctx, gradient), None


for _arguments in ((x,), (x, 0.5)):  # passed, or left to its default
    x.grad = None
    assert not _message(_FixedOldExp.apply(*_arguments).backward)
    assert torch.allclose(x.grad, 0.5 * torch.exp(torch.tensor(0.5)))
assert _message(_DefaultExp.apply(x).backward).endswith(_words)
x.grad = None


@torch.library.custom_op("atlas_number_of_gradients::scale", mutates_args=())
def _scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


_scale.register_autograd(lambda ctx, gradient: gradient)
assert "returned an incorrect number of gradients" in _message(_scale(x, 2.0).backward)
_scale.register_autograd(lambda ctx, gradient: (gradient, None))
assert not _message(_scale(x, 2.0).backward)


def _returning(returned, flags=(True,)):
    class Double(Function):
        @staticmethod
        def forward(x, *flags):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):
            return returned(2 * gradient)

    x.grad = None
    return _message(Double.apply(x, *flags).backward) or x.grad


for _surplus in (1, 2, 9):
    assert _returning(lambda dx, n=_surplus: (dx, *[None] * n)) == 2
for _returned in (lambda dx: [dx, None], lambda dx: None):
    assert "(expected 2, got 1)" in _returning(_returned)
for _returned in (lambda dx: (None, dx), lambda dx: (dx, 0)):
    assert _returning(_returned).startswith(
        "function DoubleBackward returned a gradient different than None at position 2"
    )
x.grad = None
# sphinx_gallery_end_ignore

# %%
# Return one value for each argument of ``forward`` but ``ctx``, also for one with a default value: ``None`` in the place of a
# number or a flag. A tensor for which you return ``None`` gets no gradient. If the class is a library's, update the library.


class FixedExp(Exp):
    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * ctx.scale * y, None


FixedExp.apply(x, 0.5).backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, 0.5 * torch.exp(torch.tensor(0.5)))
_factor = torch.tensor(0.5, requires_grad=True)
FixedExp.apply(x, _factor).backward()
assert _factor.grad is None
assert _returning(lambda dx: None, flags=()) is None  # a forgotten return
# sphinx_gallery_end_ignore

# %%
# - A list in square brackets counts as one value, and so does a ``backward`` without ``return``. With one argument, a forgotten
#   ``return`` is silent, and ``x.grad`` is ``None``.
# - A gradient in the place of a number says *returned a gradient different than None at position 2*.
#
# What not to do
# --------------
# **Expand the gradient** to the shape in the message. ``gradcheck`` sees it:

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

    rows = torch.arange(6.0).reshape(2, 3).requires_grad_()
    ExpandedScale.apply(rows, scale).sum().backward()
    print("rows.grad:", rows.grad)
    gradcheck(ExpandedScale.apply, (rows.double(), scale.double()))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("GradcheckError:", str(error).partition(",")[0] + ", ...")
assert torch.equal(rows.grad, 2 * scale.expand(2, 3))
assert len(raised) == 1
assert raised[0].startswith("Jacobian mismatch for output 0 with respect to input 0,")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: a custom Function from the start.
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: what backward may return.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: finds wrong gradients that have the right shape.
# - In PyTorch's reference: `Extending torch.autograd
#   <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__.
