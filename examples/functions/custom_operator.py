r"""
Custom operator with a backward: torch.library.custom_op
========================================================

.. index::
   single: register_autograd, register_fake, opcheck
   ! single: There was no fake impl registered for this operator
   ! single: Trying to backward through an operator but no autograd formula was registered
   single: your own CUDA or C++ kernel under torch.compile, fullgraph=True
   single: mutates_args
   single: autograd.Function or custom_op
   ! single: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it
   single: TORCH_LIBRARY, a C++ operator without a gradient
   single: register_kernel, a different kernel for the GPU
   single: new_dynamic_size, the size of the result depends on the data

.. in-short::

   Make an operator of a kernel that ``torch.compile`` cannot look into. Say what it writes to, which tensor it returns, and
   what its gradient is:

   .. code-block:: python

      @torch.library.custom_op("mylib::interp", mutates_args=())
      def interp(x: Tensor, knots: Tensor, values: Tensor) -> Tensor: ...

      interp.register_fake(...)
      interp.register_autograd(backward, setup_context=keep_inputs)

   PyTorch believes these declarations. ``opcheck`` tests them for the arguments that you pass, and ``gradcheck`` the gradient.
   Without ``torch.compile`` or ``torch.export``, an ``autograd.Function`` is enough.
"""

# %%
# A kernel that PyTorch cannot look into
# --------------------------------------
# You have a kernel in C++, CUDA or a library, and want to train through it, compiled. ``np.interp`` is such a kernel: it reads
# a curve that is given by its ``values`` at some ``knots``. The values are the weights to learn:

import numpy as np
import torch
from torch import Tensor, nn


@torch.library.custom_op("atlas_operator::interp", mutates_args=())
def interp(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    arrays = (tensor.numpy(force=True) for tensor in (x, knots, values))
    return torch.as_tensor(np.interp(*arrays), dtype=x.dtype, device=x.device)


@interp.register_fake
def _(x, knots, values):  # shape, dtype, strides and device, without data
    return x.new_empty(x.shape)


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    x, knots, values = ctx.saved_tensors
    right = torch.searchsorted(knots, x.contiguous()).clamp(1, len(knots) - 1)
    left = right - 1
    width = knots[right] - knots[left]
    share = (x - knots[left]) / width  # 0 at the left knot, 1 at the right one
    inside = (share >= 0) & (share <= 1)
    grad_x = grad * inside * (values[right] - values[left]) / width
    share = share.clamp(0, 1)
    grad_values = torch.zeros_like(values)
    grad_values = grad_values.index_put((left,), grad * (1 - share), accumulate=True)
    grad_values = grad_values.index_put((right,), grad * share, accumulate=True)
    return grad_x, None, grad_values  # None: knots stay where they are


interp.register_autograd(backward, setup_context=keep_inputs)

torch.manual_seed(0)
x, knots = torch.rand(256), torch.linspace(0, 1, 9)
target = torch.sin(6 * x)
values = torch.zeros(9, requires_grad=True)
loss = nn.functional.mse_loss(interp(x, knots, values), target)

# graph: loss -- The operator is one node, named after it

# %%
# ``keep_inputs`` must name its parameters ``ctx``, ``inputs`` and ``output``. Now train with ``torch.compile``. With
# ``fullgraph=True`` it raises rather than leave anything out of the graph:


@torch.compile(fullgraph=True, backend="aot_eager")
def compiled_loss(x, target, values):
    return nn.functional.mse_loss(interp(x, knots, values), target)


optimizer = torch.optim.Adam([values], lr=0.2)
for step in range(41):
    optimizer.zero_grad()
    loss = compiled_loss(x, target, values)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:>2}: loss {loss.item():.4f}")

# sphinx_gallery_start_ignore
assert loss < 0.005


def _says(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:  # some classes are PyTorch's own, in private modules
        return str(error)
    return None


@torch.library.custom_op("atlas_operator::identity", mutates_args=())
def _identity(x: Tensor) -> Tensor:
    return x


def _other_name(ctx, inputs, outputs):
    pass


@torch.library.custom_op("atlas_operator::negative", mutates_args=())
def _negative(x: Tensor) -> Tensor:
    return -x


@torch.library.custom_op("atlas_operator::filled", mutates_args=("buffer",))
def _filled(buffer: Tensor, n: int) -> Tensor:
    buffer[:n].fill_(1)
    return buffer[:n]


@torch.library.custom_op("atlas_operator::triple", mutates_args=())
def _triple(x: Tensor) -> Tensor:
    return 3 * x


@torch.library.custom_op("atlas_operator::raw", mutates_args=())
def _raw(grad: Tensor) -> Tensor:  # reads what lies behind the first number
    numbers = torch.as_strided(grad, (grad.numel(),), (1,))
    return 3 * numbers.reshape(grad.shape)


_two = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
for _pass, _right in ((lambda g: g, False), (Tensor.contiguous, True)):
    _triple.register_autograd(lambda ctx, grad, f=_pass: _raw(f(grad)))
    assert torch.autograd.gradcheck(_triple, _two)
    _both = torch.cat([_triple(_two), _triple(_two)], dim=1)
    _mask = torch.rand_like(_both)
    _found = torch.autograd.grad((_both * _mask).sum(), _two)[0]
    assert torch.allclose(_found, 3 * (_mask[:, :3] + _mask[:, 3:])) is _right


@torch.library.custom_op("atlas_operator::scaled_product", mutates_args=())
def _scaled_product(x: Tensor, y: Tensor, factor: float) -> Tensor:
    return factor * x * y


_scaled_product.register_autograd(lambda ctx, grad: (grad, grad))
_message = _says(_scaled_product(_two, _two.sin(), 2.0).sum().backward)
assert "an incorrect number of gradients (expected " in _message
_is_early = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14)
assert ("expected 4, got 3" in _message) == _is_early
assert "may not alias any inputs" in _says(_identity, x)
assert "may not alias any inputs" in _says(_filled, torch.zeros(9), 3)
_negative.register_autograd(lambda ctx, g: -g, setup_context=_other_name)
assert "unexpected keyword argument 'output'" in _says(_negative, values)
_unnamed = torch.library.custom_op("atlas_operator::unnamed", mutates_args=())
assert "Parameter x must have a type annotation" in _says(_unnamed, lambda x: x)
# sphinx_gallery_end_ignore

# %%
# What you declare, and who needs it
# ----------------------------------
# PyTorch relies on four things:
#
# - ``mutates_args``: the arguments that the kernel writes to.
# - The result is new memory. If it is an argument or a view of one, you get *may not alias any inputs*: return a ``clone()``.
# - ``register_fake``: what the result looks like. The compiler calls it instead of the kernel.
# - ``register_autograd``: the gradient, one for each argument. The compiler traces it, so it may call only PyTorch operations
#   and operators. Up to 2.13, *incorrect number of gradients (expected 4, got 3)* counts one too many on both sides: there are
#   three arguments and two gradients (`pytorch#137219 <https://github.com/pytorch/pytorch/issues/137219>`__).
#
# If ``backward`` calls a kernel that reads raw memory, give it ``grad.contiguous()``: ``gradcheck`` does not see it (see
# :ref:`the page on Triton <sphx_glr_gallery_functions_triton_kernel.py>` and `pytorch#194719
# <https://github.com/pytorch/pytorch/issues/194719>`__).
#
# Under ``autocast`` a kernel can get ``bfloat16``, which NumPy refuses: *Got unsupported ScalarType BFloat16*. Then add
# ``interp.register_autocast("cpu", torch.float32)``, or ``"cuda"``.
#
# .. how-measured:: make_interp() makes the operator again, with something missing or false. The gradients are compared with
#    those of the same curve in PyTorch operations, and opcheck tests the operators.

import warnings

import pandas as pd


def curve(x, knots, values):
    right = torch.searchsorted(knots, x.contiguous()).clamp(1, len(knots) - 1)
    share = (x - knots[right - 1]) / (knots[right] - knots[right - 1])
    return torch.lerp(values[right - 1], values[right], share.clamp(0, 1))


def numpy_backward(ctx, grad):
    grads = backward(ctx, grad)  # the right numbers, by way of NumPy
    return grads[0], None, torch.from_numpy(grads[2].numpy())


def twice_the_gradient(ctx, grad):
    return backward(ctx, 2 * grad)


def make_interp(name, fake=True, gradient=backward, writes=False):
    @torch.library.custom_op(f"atlas_operator::{name}", mutates_args=())
    def operator(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
        arrays = [tensor.numpy(force=True) for tensor in (x, knots, values)]
        if writes:
            np.clip(arrays[0], *arrays[1][[0, -1]], out=arrays[0])
        return torch.as_tensor(np.interp(*arrays), dtype=x.dtype)

    if fake:
        operator.register_fake(lambda x, knots, values: x.new_empty(x.shape))
    if gradient:
        operator.register_autograd(gradient, setup_context=keep_inputs)
    return operator


class AroundTheKernel(torch.autograd.Function):
    @staticmethod
    def forward(x, knots, values):
        arrays = (tensor.numpy(force=True) for tensor in (x, knots, values))
        return torch.as_tensor(np.interp(*arrays), dtype=x.dtype)

    setup_context, backward = staticmethod(keep_inputs), staticmethod(backward)


class OfPyTorch(AroundTheKernel):
    forward = staticmethod(curve)


def outcome(function, compiled):
    x = torch.linspace(-2, 2, 12).requires_grad_()
    knots, values = torch.linspace(0.25, 0.75, 5), torch.rand(5, requires_grad=True)

    def loss(function):
        return function(x.sigmoid(), knots, values).square().sum()

    expected = torch.autograd.grad(loss(curve), (x, values))
    if compiled:
        loss = torch.compile(loss, fullgraph=True, backend="aot_eager")
    try:
        grads = torch.autograd.grad(loss(function), (x, values))
    except Exception as error:  # some are PyTorch's own classes
        messages[function, compiled] = str(error)
        return "raises"
    right = all(map(torch.allclose, grads, expected))
    return "right" if right else "WRONG"


def check(operator):
    if not isinstance(operator, torch.library.CustomOpDef):
        return "-"
    x = torch.linspace(0, 1, 12, requires_grad=True)
    inputs = x, torch.linspace(0.25, 0.75, 5), torch.rand(5, requires_grad=True)
    results = torch.library.opcheck(operator, inputs, raise_exception=False)
    failed[operator] = [name for name, r in results.items() if r != "SUCCESS"]
    return "fails" if failed[operator] else "passes"


def tabulate(functions):
    with warnings.catch_warnings():  # Dynamo and opcheck cause some themselves
        warnings.simplefilter("ignore")
        rows = {
            name: [outcome(f, False), outcome(f, True), check(f)]
            for name, f in functions.items()
        }
    columns = ["eager", "compile", "opcheck"]
    return pd.DataFrame.from_dict(rows, "index", columns=columns)


messages, failed = {}, {}

# %%
# The gradient of the operator above, of five that lack something or declare something false, and of two Functions:

functions = {
    "interp": interp,
    "no autograd": make_interp("no_autograd", gradient=None),
    "no fake": make_interp("no_fake", fake=False),
    "NumPy backward": make_interp("numpy_backward", gradient=numpy_backward),
    "undeclared write": make_interp("writes", writes=True),
    "gradient doubled": make_interp("twice", gradient=twice_the_gradient),
    "Function, NumPy": AroundTheKernel.apply,
    "Function, torch": OfPyTorch.apply,
}
table = tabulate(functions)

# sphinx_gallery_start_ignore
assert table.values.tolist() == [
    ["right", "right", "passes"],
    ["raises", "raises", "fails"],
    ["right", "raises", "fails"],
    ["right", "raises", "fails"],
    ["WRONG", "WRONG", "fails"],
    ["WRONG", "WRONG", "passes"],
    ["right", "raises", "-"],
    ["right", "right", "-"],
]
for _dtype in (torch.float32, torch.float64):
    for _shape in ((6,), (1,), (0,), (3, 4)):
        _x = (torch.rand(_shape, dtype=_dtype) * 1.4 - 0.2).requires_grad_()
        for _at in (_x, _x.T if _x.dim() == 2 else _x):
            _v = torch.rand(9, dtype=_dtype, requires_grad=True)
            _own, _ref = (
                interp(_at, knots.to(_dtype), _v),
                curve(_at, knots.to(_dtype), _v),
            )
            assert torch.allclose(_own, _ref) and _own.dtype == _dtype
            _w = torch.rand_like(_own)
            for _a, _b in zip(
                torch.autograd.grad(_own, (_at, _v), _w),
                torch.autograd.grad(_ref, (_at, _v), _w),
                strict=True,
            ):
                assert torch.allclose(_a, _b, atol=1e-5)
with torch.no_grad():
    assert not interp(x, knots, values).requires_grad
_slope = torch.func.grad(lambda x, call: call(x, knots, values.detach()).sum())
assert "must override the setup_context staticmethod" in _says(_slope, x, interp)
for _call in (AroundTheKernel.apply, OfPyTorch.apply):
    assert torch.allclose(_slope(x, _call), _slope(x, curve), atol=1e-5)
assert torch.ops.atlas_operator.interp(x, knots, values).grad_fn is not None
assert [_tests for _tests in failed.values() if _tests] == [
    ["test_aot_dispatch_dynamic"],
    ["test_faketensor", "test_aot_dispatch_dynamic"],
    ["test_aot_dispatch_dynamic"],
    ["test_schema"],
]
_reasons = {
    "no autograd": "but no autograd formula was registered. Please use",
    "no fake": "There was no fake impl registered for",
    "NumPy backward": ".numpy() is not supported for tensor subclasses",
    "Function, NumPy": "attempted to trace numpy function unsupported by",
}
for _name, _reason in _reasons.items():
    assert _reason in messages[functions[_name], True]


class _Model(nn.Module):
    def __init__(self, operator):
        super().__init__()
        self.operator, self.values = operator, nn.Parameter(torch.rand(9))

    def forward(self, x):
        return self.operator(x, knots, self.values) * 2


_cast = make_interp("cast")


def _under_autocast():
    with torch.autocast("cpu", torch.bfloat16):
        narrow = x[:, None] @ torch.ones(1, 1)
        return torch.autograd.grad(_cast(narrow, knots, values).sum(), values)[0]


assert "unsupported ScalarType BFloat16" in _says(_under_autocast)
_cast.register_autocast("cpu", torch.float32)
_expected = torch.autograd.grad(curve(x, knots, values).sum(), values)[0]
assert torch.allclose(_under_autocast(), _expected, atol=0.5, rtol=0.05)
_exported = torch.export.export(_Model(interp), (x,))
_steps = [n.target for n in _exported.graph.nodes if n.op == "call_function"]
assert _steps[0] is torch.ops.atlas_operator.interp.default and len(_steps) == 2
_no_fake = _Model(functions["no fake"])
assert "no fake impl registered" in _says(torch.export.export, _no_fake, (x,))
# sphinx_gallery_end_ignore
table

# %%
# The compiler says *no autograd formula was registered*, *no fake impl registered*, and for NumPy in ``backward`` *.numpy() is
# not supported for tensor subclasses*. ``opcheck`` says *Argument x is not defined as mutable but was mutated*.
#
# **When is a Function enough?** Where you neither compile nor export, or where you compile a Function of PyTorch operations.
# ``torch.compile`` looks into a Function, and cannot follow ``np.interp``. An operator it takes as one step. But
# ``torch.func.grad`` :ref:`takes only a Function <sphx_glr_gallery_functions_functions_and_transforms.py>`. If your backward is
# a kernel, it needs its own operator: see the exercise.

# %%
# Arguments that the kernel writes to
# -----------------------------------
# Name them in ``mutates_args``. Here a kernel scales a running average, a buffer, in place:


def make_scale(name, mutates_args):
    @torch.library.custom_op(f"atlas_operator::{name}", mutates_args=mutates_args)
    def scale(x: Tensor, factor: float) -> None:
        array = x.detach().numpy()
        array *= factor

    scale.register_fake(lambda x, factor: None)
    return scale


@torch.compile(fullgraph=True, backend="aot_eager")
def forward(x, average, scale):
    scale(average, 0.5)
    return x + average


scale = make_scale("scale", mutates_args=["x"])
undeclared = make_scale("undeclared", mutates_args=())
for operator in (scale, undeclared):
    average = torch.ones(2)
    result = forward(torch.zeros(2), average, operator)
    print(f"average {average.tolist()}, result {result.tolist()}")

# sphinx_gallery_start_ignore
assert result.tolist() == average.tolist() == [1, 1]
_average = torch.ones(2)
assert forward(torch.zeros(2), _average, scale).tolist() == [0.5, 0.5]
assert _average.tolist() == [0.5, 0.5]
for _operator in (scale, undeclared):  # not compiled: both write, and one is counted
    _average = torch.ones(2)
    _operator(_average, 0.5)
    assert _average.tolist() == [0.5, 0.5]
    assert _average._version == (_operator is scale)
# sphinx_gallery_end_ignore

# %%
# The compiler removed the second call: it seemed to do nothing.

# %%
# A kernel for each device
# ------------------------
# The function under ``custom_op`` is the kernel for all devices. ``register_kernel`` replaces it on one of them, such as
# ``"cuda"``, and the gradient stays:

by_device = make_interp("by_device")


@by_device.register_kernel("cpu")
def _(x, knots, values):
    return curve(x, knots, values)


fast, slow = by_device(x, knots, values), interp(x, knots, values)
print("the same curve:", torch.allclose(fast, slow, atol=1e-6), fast.grad_fn.name())

# sphinx_gallery_start_ignore
assert torch.allclose(fast, slow, atol=1e-6) and not torch.equal(fast, slow)
_grads = [torch.autograd.grad(y.square().sum(), values)[0] for y in (fast, slow)]
assert torch.allclose(*_grads, atol=1e-4)
with by_device.set_kernel_enabled("cpu", enabled=False):
    assert torch.equal(by_device(x, knots, values), slow)


@torch.library.custom_op(
    "atlas_operator::other_device", mutates_args=(), device_types="cuda"
)
def _other_device(x: Tensor) -> Tensor:
    return x + 1


assert "arguments from the 'CPU' backend" in _says(_other_device, x)
_other_device.register_kernel("cpu")(lambda x: x + 1)
assert torch.equal(_other_device(x), x + 1)
with torch.autocast("cpu", torch.bfloat16):
    assert _cast(x.bfloat16(), knots, values).dtype == torch.float32
assert "unsupported ScalarType BFloat16" in _says(_cast, x.bfloat16(), knots, values)
# sphinx_gallery_end_ignore

# %%
# A gradient for an operator from C++
# -----------------------------------
# ``TORCH_LIBRARY`` in C++ registers a signature and a kernel. ``Library`` does the same in Python. The derivative of :math:`w +
# \sin w` at 0 is 2, and backward says 1:

library = torch.library.Library("atlas_library", "DEF")  # keep it alive


def kernel(x: Tensor) -> Tensor:
    return torch.as_tensor(np.sin(x.numpy(force=True)))


library.define("sine(Tensor x) -> Tensor")  # infer_schema can write it
library.impl("sine", kernel, "CPU")
sine = torch.ops.atlas_library.sine

# sphinx_gallery_start_ignore
_context = warnings.catch_warnings(record=True)
_caught = _context.__enter__()
warnings.simplefilter("always")
# sphinx_gallery_end_ignore
w = torch.zeros(1, requires_grad=True)
(w + sine(w)).sum().backward()
# sphinx_gallery_start_ignore
import textwrap

_warning = str(_caught[0].message).split(". This")[0]
print(textwrap.fill(f"UserWarning: {_warning}", 88))
_context.__exit__(None, None, None)
assert len(_caught) == 1 and w.grad == 1
_schema = torch.library.infer_schema(kernel, mutates_args=())
assert _schema == "(Tensor x) -> Tensor"
# sphinx_gallery_end_ignore
print("w.grad:", w.grad.item())

# %%
# Register the gradient by the operator's name:


def sine_backward(ctx, grad):
    return grad * ctx.saved_tensors[0].cos()


name = "atlas_library::sine"
torch.library.register_autograd(name, sine_backward, setup_context=keep_inputs)
torch.library.register_fake(name, torch.empty_like)

w.grad = None
(w + sine(w)).sum().backward()
print("w.grad:", w.grad.item())

# sphinx_gallery_start_ignore
import gc

assert w.grad == 2 and sine(torch.tensor(0.0)) == 0  # NumPy gives a number
_compiled = torch.compile(lambda w: w + sine(w), fullgraph=True, backend="aot_eager")
assert torch.autograd.grad(_compiled(w).sum(), w)[0] == 2
with warnings.catch_warnings():  # since 2.14 opcheck reads .grad of a non-leaf
    warnings.simplefilter("ignore")
    for _operator, _arguments in (
        (sine.default, (torch.rand(3, 4, requires_grad=True),)),
        (by_device, (x, knots, values)),
    ):
        _results = torch.library.opcheck(_operator, _arguments)
        assert set(_results.values()) == {"SUCCESS"}
_lost = torch.library.Library("atlas_lost", "DEF")
_lost.define("sine(Tensor x) -> Tensor")
_lost.impl("sine", kernel, "CPU")
assert torch.equal(torch.ops.atlas_lost.sine(x), sine(x))
del _lost
gc.collect()
assert "object has no attribute 'sine'" in _says(lambda: torch.ops.atlas_lost.sine(x))
assert "Only a single TORCH_LIBRARY can be used to register the namespace" in _says(
    torch.library.Library, "atlas_library", "DEF"
)
# sphinx_gallery_end_ignore

# %%
# If the size of the result depends on the data, as for ``np.unique``, the fake function asks for a size that is not known yet:


@torch.library.custom_op("atlas_operator::distinct", mutates_args=())
def distinct(x: Tensor) -> Tensor:
    return torch.from_numpy(np.unique(x.numpy(force=True)))


@distinct.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


@torch.compile(fullgraph=True, backend="aot_eager")
def count_distinct(x):
    return torch.ones_like(distinct(x)).sum()


print("distinct numbers:", count_distinct(torch.tensor([1.0, 2.0, 1.0])).item())

# sphinx_gallery_start_ignore
for _numbers, _count in (([1.0, 2.0, 1.0], 2), ([], 0), ([3.0], 1), (range(5), 5)):
    assert count_distinct(torch.tensor(_numbers)) == _count
assert torch.library.opcheck(distinct, (torch.ones(3),))["test_faketensor"] == "SUCCESS"
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Writing to a tensor that needs a gradient.** The declared write of ``scale`` has no gradient, and there is no error:

w = torch.ones(2, requires_grad=True)
h = 1 * w
scale(h, 3.0)
h.sum().backward()
print("w.grad:", w.grad, "  right: 3")

try:
    scale.register_autograd(lambda ctx, grad: None)
except RuntimeError as error:
    message = str(error)
    print(message.partition(" <")[0])

# sphinx_gallery_start_ignore
assert h.tolist() == [3, 3] and w.grad.tolist() == [1, 1]
assert message.startswith("Cannot register autograd formula for non-functional oper")
assert _says(scale, w, 3.0) is None and w.tolist() == [3, 3]  # a leaf
_saved = w.sigmoid()
scale(_saved, 0.5)
assert "modified by an inplace operation" in _says(_saved.sum().backward)
_saved, _before = w.sigmoid(), w.sigmoid().detach()
undeclared(_saved, 0.5)
_wrong = torch.autograd.grad(_saved.sum(), w)[0]
assert not torch.allclose(_wrong, _before * (1 - _before), rtol=0.1)


@torch.library.custom_op("atlas_operator::scaled", mutates_args=())
def _scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor


def _keep_factor(ctx, inputs, output):
    ctx.factor = inputs[1]


_scaled.register_autograd(
    lambda ctx, grad: (grad * ctx.factor, None), setup_context=_keep_factor
)
w.grad = None
_scaled(1 * w, 3.0).sum().backward()
assert w.grad.tolist() == [3, 3]
# sphinx_gallery_end_ignore

# %%
# Return a new tensor instead, and write only to buffers and other tensors without a gradient.
#
# **A write that is not declared** also spoils what autograd has saved: in the table, ``sigmoid`` had saved ``x``. After a
# declared write, backward raises *modified by an inplace operation*.
#
# **Taking opcheck for a proof.** A gradient twice as large passes. ``gradcheck`` in ``float64`` finds it:

double = [tensor.detach().double().requires_grad_() for tensor in (x[:5], values)]


def twice(x, values):
    return functions["gradient doubled"](x, knots.double(), values)


try:
    torch.autograd.gradcheck(twice, double)
except RuntimeError as error:
    message = str(error)
    print(message.split(",")[0])

# sphinx_gallery_start_ignore
assert message.startswith("Jacobian mismatch for output 0 with respect to input 0")
assert torch.autograd.gradcheck(lambda x, v: interp(x, knots.double(), v), double)
_like = make_interp("like", fake=False)
_like.register_fake(lambda x, knots, values: torch.empty_like(x))
_square = torch.rand(3, 4)


def _opcheck(*arguments):
    with warnings.catch_warnings():  # since 2.14 it reads .grad of a non-leaf
        warnings.simplefilter("ignore")
        return torch.library.opcheck(*arguments, test_utils=_TESTS)


_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor")
_inputs = knots, values.detach()
assert set(_opcheck(_like, (_square, *_inputs)).values()) == {"SUCCESS"}
assert "Stride mismatch" in _says(_opcheck, _like, (_square.T, *_inputs))
assert set(_opcheck(interp, (_square.T, *_inputs)).values()) == {"SUCCESS"}
_no_autograd = functions["no autograd"]
_said = _says(_opcheck, functions["undeclared write"], (2 * x, *_inputs))
assert "Argument x is not defined as mutable but was mutated" in _said
assert set(_opcheck(_no_autograd, (x, *_inputs)).values()) == {"SUCCESS"}
# sphinx_gallery_end_ignore

# %%
# ``opcheck`` sees only the arguments that you pass. Pass one that requires grad: without it, a missing ``register_autograd``
# passes. Pass a transposed one: a fake function ``torch.empty_like(x)`` passes until then, with the wrong strides.

# %%
# Exercise
# --------
# The share of knot *k* in the result is ``np.interp(x, knots, unit)``, where ``unit`` is 1 at *k* and 0 elsewhere. Write the
# gradient of ``values`` with it, so that ``torch.compile`` takes it.
#
# .. solution::
#
# A second operator, with its own fake function. ``backward`` calls it:


@torch.library.custom_op("atlas_operator::interp_backward", mutates_args=())
def interp_backward(grad: Tensor, x: Tensor, knots: Tensor) -> Tensor:
    g, at, k = (t.numpy(force=True).ravel() for t in (grad, x, knots))
    shares = np.stack([np.interp(at, k, unit) for unit in np.eye(len(k))])
    return torch.as_tensor(shares @ g, dtype=knots.dtype, device=knots.device)


@interp_backward.register_fake
def _(grad, x, knots):
    return knots.new_empty(knots.shape)


def kernel_backward(ctx, grad):
    x, knots, _ = ctx.saved_tensors
    return None, None, interp_backward(grad, x, knots)


with_kernel = make_interp("with_kernel", gradient=kernel_backward)


@torch.compile(fullgraph=True, backend="aot_eager")
def compiled_square(values):
    return with_kernel(x, knots, values).square().sum()


(grad,) = torch.autograd.grad(compiled_square(values), values)
(expected,) = torch.autograd.grad(curve(x, knots, values).square().sum(), values)
print("same gradient:", torch.allclose(grad, expected, rtol=1e-4))
assert torch.allclose(grad, expected, rtol=1e-4)

# sphinx_gallery_start_ignore
for _arguments in ((x, knots, values), (x.double(), knots.double(), values.double())):
    assert set(_opcheck(with_kernel, _arguments).values()) == {"SUCCESS"}
    _arguments = _arguments[0].sin(), *_arguments[:2]
    assert set(_opcheck(interp_backward, _arguments).values()) == {"SUCCESS"}
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: begin there if you need no compiler.
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: ``register_vmap``, and ``jvp``, which is silently 0.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`.
# - :ref:`sphx_glr_gallery_memory_selective_checkpointing.py`: keep your operator's result, as
#   ``torch.ops.mylib.interp.default``.
# - :ref:`sphx_glr_gallery_functions_triton_kernel.py`: ``triton_op``, and a second kernel for the gradient.
# - In PyTorch's reference: `torch.library <https://docs.pytorch.org/docs/stable/library.html>`__.
