r"""
Use less memory in a custom Function
====================================

.. index::
   single: memory-efficient Swish, SiLU or Mish, MemoryEfficientSwish
   single: recompute an activation in backward
   single: save the output and not the input for backward
   single: ReLU with a one-bit mask
   single: clear_saved_tensors_on_access
   single: boxed_grads_call
   single: saved_tensors can only be accessed once
   single: peak memory inside backward of a Function
   single: custom Function uses more memory than autograd

.. in-short::

   Write the operations as one ``Function``. Save its input, and compute the rest again in ``backward``. Or save its output,
   if the derivative follows from the output:

   .. code-block:: python

      ctx.save_for_backward(output)  # tanh, sigmoid, exp

   That adds nothing if the next layer keeps this tensor anyway, as a trained ``Linear`` does. But a Function of many steps can
   raise the peak in backward, so set ``clear_saved_tensors_on_access = True``.
"""

# %%
# Swish as two operations keeps two tensors
# -----------------------------------------
# The activation Swish, written with two operations, and as the one operation that PyTorch has for it. Add up what the graph
# saves for backward:

import textwrap

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import gradcheck
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef


def swish(x):
    return x * torch.sigmoid(x)


def count_saved_bytes(call, *arguments):
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        _result = call(*arguments)
    return sum(kept.values())


x = torch.randn(1000, requires_grad=True)  # 4000 bytes
print("two operations:", count_saved_bytes(swish, x), "bytes")
print("F.silu:        ", count_saved_bytes(F.silu, x), "bytes")

# sphinx_gallery_start_ignore
assert (count_saved_bytes(swish, x), count_saved_bytes(F.silu, x)) == (8000, 4000)
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: The same count for a chain; the part of the activation is what it adds to Identity. And the plot.

import matplotlib.pyplot as plt
import pandas as pd


def chain(activation, following):
    return following(activation(before(data)))


def alone(activation, following=None):
    extra = count_saved_bytes(chain, activation, following or after)
    extra -= count_saved_bytes(chain, nn.Identity(), following or after)
    return extra / data.numel()


def plot_kept_bytes():
    _, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
    extra = [alone(activation) for activation in activations.values()]
    names = list(activations)
    ax.barh(names, [8] * len(names), color="#64748b", label="for the two Linear layers")
    bars = ax.barh(names, extra, left=8, color="#c2410c", label="for the activation")
    ax.bar_label(bars, [f"+ {bytes_:g}" for bytes_ in extra], padding=4)
    ax.invert_yaxis()
    ax.set(xlabel="bytes kept per element", xlim=(0, 25))
    ax.set_title("Linear, activation, Linear: what is kept for backward")
    ax.legend(loc="lower right")


# %%
# A chain of ``Linear``, an activation and ``Linear``, with tensors of one size in ``float32``:

torch.manual_seed(0)
data = torch.randn(64, 40)
before, after = nn.Linear(40, 40), nn.Linear(40, 40)

activations = {
    "x * torch.sigmoid(x)": swish,
    "F.silu(x)": F.silu,
    "torch.tanh(x)": torch.tanh,
    "F.relu(x)": F.relu,
}

# figure: A bar for each of four activations. The two Linear layers keep 8 bytes per element in each bar. The activation adds 8
#   if Swish is written as two operations, 4 for F.silu, and 0 for tanh and relu.
plot_kept_bytes()

# sphinx_gallery_start_ignore
assert [alone(f) for f in activations.values()] == [8, 4, 0, 0]
_both = count_saved_bytes(chain, nn.Identity(), after) - before.weight.nbytes
assert _both in (8 * data.numel(), 8 * data.numel() + before.weight.nbytes)
_h = before(data)
for _f in (F.relu, torch.tanh):
    _seen = []
    with saved_tensors_hooks(
        lambda t, seen=_seen: seen.append(t.data_ptr()) or t.detach(), lambda t: t
    ):
        _y = _f(_h)
        assert _seen == [_y.data_ptr()]
        _z = after(_y)
    assert _seen.count(_y.data_ptr()) == 2
# sphinx_gallery_end_ignore

# %%
# The product saves both of its factors, ``x`` and the sigmoid. ``F.silu`` is Swish as *one* operation, so it saves ``x`` only.
# ``tanh`` and ``relu`` add nothing, because they save their *result*, and the next ``Linear`` saves the same tensor as its
# input.

# %%
# Write one operation yourself
# ----------------------------
# Look for a built-in operation first. Otherwise do in a Function what ``F.silu`` does: save ``x``, then compute the sigmoid a
# second time in ``backward``.


def slope(x):
    s = torch.sigmoid(x)
    return s * (1 + x * (1 - s))  # the derivative of x * s


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * slope(x)


# sphinx_gallery_start_ignore
_p = torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True)
assert gradcheck(Swish.apply, _p) and torch.autograd.gradgradcheck(Swish.apply, _p)
for _shape in ((), (0,), (1,), (3, 2)):
    _x = torch.randn(_shape, requires_grad=True)
    _pair = [
        torch.autograd.grad(f(_x).square().sum(), _x)[0] for f in (Swish.apply, F.silu)
    ]
    assert torch.allclose(*_pair, atol=1e-6)
_by_func = torch.func.grad(lambda x: Swish.apply(x).sum())(_p.detach())
assert torch.allclose(_by_func, slope(_p.detach()))
# sphinx_gallery_end_ignore

# %%
# The price is that second sigmoid. Some projects train with such a Swish, and export the plain one to ONNX
# (`EfficientNet-PyTorch#228 <https://github.com/lukemelas/EfficientNet-PyTorch/issues/228>`__).
#
# Or save the output, as ``tanh`` does. If :math:`y = c \tanh(x / c)`, the derivative is :math:`1 - (y / c)^2`, so ``y`` is
# enough:


class Softcap(torch.autograd.Function):
    @staticmethod
    def forward(x, cap):
        return cap * torch.tanh(x / cap)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.cap = inputs[1]  # a number may be an attribute
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - (y / ctx.cap) ** 2), None


# %%
# For a ReLU, one bit per element is enough. A boolean tensor takes eight:


class ReluMask(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.relu()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output != 0)  # not > 0: F.relu lets NaN through

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return torch.where(mask, grad_output, 0)


BITS = 2 ** torch.arange(8, dtype=torch.uint8)


class ReluBits(ReluMask):
    @staticmethod
    def setup_context(ctx, inputs, output):
        mask = F.pad(output.flatten() != 0, (0, -output.numel() % 8)).view(-1, 8)
        packed = (mask * BITS.to(output.device)).sum(1, dtype=torch.uint8)
        ctx.save_for_backward(packed)

    @staticmethod
    def backward(ctx, grad_output):
        (packed,) = ctx.saved_tensors
        mask = (packed[:, None] & BITS.to(packed.device)) != 0
        mask = mask.flatten()[: grad_output.numel()].view(grad_output.shape)
        return torch.where(mask, grad_output, 0)


# %%
# And ``Swish`` can round what it saves:


class SwishBfloat16(Swish):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0].bfloat16())

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * slope(x.to(grad_output.dtype))


# %%
# .. how-measured:: The bytes as above, the error of the gradient against float64, and gradcheck for each version.


points = torch.linspace(-4, 4, 1000)


def gradient(function, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


def measure_version(function, formula):
    exact = gradient(formula, points.double())
    error = ((gradient(function, points) - exact).norm() / exact.norm()).item()
    few = points[::111].double().requires_grad_()
    return {
        "before Linear": alone(function),
        "before +": alone(function, lambda hidden: hidden + data),
        "gradient error": error,
        "gradcheck": gradcheck(function, few, raise_exception=False),
    }


def measure_versions(versions):
    rows = {name: measure_version(*pair) for name, pair in versions.items()}
    return pd.DataFrame(rows).T


def format_table(table):
    shown = table.map(lambda cell: cell if isinstance(cell, bool) else f"{cell:.3g}")
    errors = table["gradient error"]
    shown["gradient error"] = [f"{e:.0e}" if e else "0" for e in errors]
    return shown


# %%
# What each adds, in bytes per element. The next operation is a ``Linear``, or an addition, which keeps nothing:


def softcap(x):
    return 3 * torch.tanh(x / 3)


versions = {
    "x * torch.sigmoid(x)": (swish, swish),
    "Swish": (Swish.apply, swish),
    "SwishBfloat16": (SwishBfloat16.apply, swish),
    "3 * torch.tanh(x / 3)": (softcap, softcap),
    "Softcap": (lambda x: Softcap.apply(x, 3.0), softcap),
    "F.relu": (F.relu, F.relu),
    "ReluMask": (ReluMask.apply, F.relu),
    "ReluBits": (ReluBits.apply, F.relu),
    "0.5 * x": (lambda x: 0.5 * x, lambda x: 0.5 * x),
}
kept = measure_versions(versions)

# sphinx_gallery_start_ignore
assert kept["before Linear"].tolist() == [8, 4, 2, 4, 0, 0, 1, 0.125, 0]
assert kept["before +"].tolist() == [8, 4, 2, 4, 4, 4, 1, 0.125, 0]
_ok = kept.index != "SwishBfloat16"
assert kept["gradcheck"].tolist() == _ok.tolist()
_errors = kept["gradient error"]
assert (_errors[_ok] < 1e-6).all() and 3e-4 < _errors.iloc[2] < 5e-4
assert (
    count_saved_bytes(lambda x: x + data, torch.randn(64, 40, requires_grad=True)) == 0
)
_meta = torch.randn(9, device="meta", requires_grad=True)
ReluBits.apply(_meta).sum().backward()
assert _meta.grad.shape == (9,)
for _shape in ((), (0,), (1,), (7,), (8,), (3, 5), (2, 3, 4)):
    for _x in (
        torch.randn(_shape),
        torch.zeros(_shape),
        -torch.zeros(_shape),
        torch.full(_shape, torch.nan),
        torch.full(_shape, -torch.inf),
        torch.randn(_shape).bfloat16(),
    ):
        _right = gradient(F.relu, _x)
        for _f in (ReluMask.apply, ReluBits.apply):
            assert torch.equal(gradient(_f, _x), _right) and _right.dtype == _x.dtype
for _dtype in (torch.float64, torch.bfloat16):  # what SwishBfloat16 keeps of others
    _leaf = torch.randn(10, dtype=_dtype, requires_grad=True)
    assert count_saved_bytes(SwishBfloat16.apply, _leaf) == 20
_t = torch.randn(6, 4).T
assert torch.equal(gradient(ReluBits.apply, _t), gradient(F.relu, _t))
after.requires_grad_(False)  # a frozen Linear does not keep its input
assert alone(lambda x: Softcap.apply(x, 3.0)) == 4 == alone(F.relu)
after.requires_grad_(True)
_leaf = torch.randn(64, 40, requires_grad=True)
with torch.autocast("cpu", dtype=torch.bfloat16):
    _extra = count_saved_bytes(lambda x: after(Softcap.apply(x, 3.0)), _leaf)
    assert _extra - count_saved_bytes(after, _leaf) == 4 * _leaf.numel()
    assert alone(lambda x: Softcap.apply(x, 3.0)) == 0  # from one Linear to the next
_from_output = {
    torch.tanh: lambda y, g: g * (1 - y**2),
    torch.sigmoid: lambda y, g: g * y * (1 - y),
    torch.exp: lambda y, g: g * y,
}


def _saves_output(function, rule):
    class FromOutput(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return function(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad_output):
            return rule(*ctx.saved_tensors, grad_output)

    return FromOutput


for _f, _rule in _from_output.items():
    _class = _saves_output(_f, _rule)
    _x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(_class.apply, _x) and torch.autograd.gradgradcheck(
        _class.apply, _x
    )
    assert alone(_class.apply) == 0
assert torch.autograd.gradgradcheck(lambda x: Softcap.apply(x, 3.0), _x)
for _first in (torch.exp, torch.tanh, torch.sigmoid, F.relu, lambda x: x.softmax(0)):
    _leaf = torch.randn(10, requires_grad=True)
    assert count_saved_bytes(lambda x, f=_first: Swish.apply(f(x)), _leaf) == 40
for _first in (torch.sin, torch.log, F.silu, F.gelu):
    _leaf = torch.rand(10, requires_grad=True)
    assert count_saved_bytes(lambda x, f=_first: Swish.apply(f(x)), _leaf) == 80


before.zero_grad()
# sphinx_gallery_end_ignore
format_table(kept)

# %%
# - Saving the output is free if the next operation keeps this tensor. A ``Linear`` with a trained weight does, unless it
#   keeps a copy: of a ``float32`` tensor under autocast, for example.
# - Saving the input is free if the operation before keeps its result, as ``exp``, ``tanh`` and ``relu`` do.
# - The derivative of ``0.5 * x`` is 0.5 for each ``x``, so it needs no tensor.
# - ``bfloat16`` halves the bytes of a ``float32`` tensor, but the gradient is wrong by about 0.04 %, and ``gradcheck`` fails.

# %%
# Why a Function of many steps can need more
# ------------------------------------------
# In a plain ``backward()``, a node frees its saved tensors when its own part is done. A Function is *one* node, so it frees
# them when its whole ``backward`` is done. This Function does the work of several layers:


class Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *weights):
        hidden = [x]
        for weight in weights:
            hidden.append(torch.tanh(hidden[-1] @ weight))
        ctx.save_for_backward(*weights, *hidden)
        return hidden[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return layers_back(list(ctx.saved_tensors), [grad_output])


def layers_back(saved, grads):
    grad, gradients = grads.pop(), []
    weights = [saved.pop(0) for _ in range(len(saved) // 2)]
    while weights:
        grad = grad * (1 - saved.pop() ** 2)
        gradients.insert(0, saved[-1].mT @ grad)
        grad = grad @ weights.pop().mT
    return grad, *gradients


# %%
# ``saved.pop()`` should free a tensor, but ``ctx`` still keeps it. One line changes that, from PyTorch 2.11 on:


class BlockCleared(Block):
    clear_saved_tensors_on_access = True


# %%
# The gradient that arrives is kept until ``backward`` returns, too. From PyTorch 2.13 on, it can come in a list that you
# empty:


class BlockBoxed(BlockCleared):
    boxed_grads_call = True

    @staticmethod
    def backward(ctx, grads):
        if torch.is_grad_enabled():  # in place of once_differentiable
            raise RuntimeError("no second derivative")
        return layers_back(list(ctx.saved_tensors), grads)


# %%
# .. how-measured:: A TorchDispatchMode counts the live storages after each operation of backward, without x and the weights.

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Live(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.made, self.counts = {}, []

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # otherwise the first call imports torch._dynamo, for seconds

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            storage = tensor.untyped_storage()
            self.made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        live = (n for storage, n in self.made.values() if not storage.expired())
        self.counts.append(sum(live) / 100**2 / 4)
        return result


def live_in_backward(function, count=7):
    leaves = [(torch.randn(100, 100) / 10).requires_grad_() for _ in range(count)]
    with Live() as live:
        loss = (2 * function(*leaves)).sum()
        start = len(live.counts)
        loss.backward()
    return live.counts[start:]


def plot_live_tensors(live):
    _, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    colors = ("#c2410c", "#2563eb", "#7c3aed", "#64748b")
    for (name, counts), color in zip(live.items(), colors, strict=True):
        progress = torch.linspace(0, 100, len(counts))
        ax.plot(progress, counts, color=color, label=f"{name}: {max(counts):.0f}")
    ax.set(xlabel="percent of the operations of backward", ylabel="live tensors")
    ax.set(ylim=(0, 33))
    ax.set_title("Live tensors in backward, and their peak")
    ax.legend(loc="upper left")


# %%
# Six layers. Each adds the gradient of its weight, and should free one saved tensor:


def composed(x, *weights):
    for weight in weights:
        x = torch.tanh(x @ weight)
    return x


has_boxed = hasattr(torch.autograd.Function, "boxed_grads_call")
lines = {
    "one Function": Block.apply,
    "clear_saved_tensors_on_access": BlockCleared.apply,
    "... and boxed_grads_call": (BlockBoxed if has_boxed else BlockCleared).apply,
    "six layers, no Function": composed,
}
live = {name: live_in_backward(function) for name, function in lines.items()}
# figure: Live tensors over the operations of backward, for four versions. One Function rises to a peak of 22. With
#   clear_saved_tensors_on_access the peak is 16. With boxed_grads_call as well it is 15, as for six layers without a Function.
plot_live_tensors(live)

# sphinx_gallery_start_ignore
_peaks = [round(max(counts)) for counts in live.values()]
assert _peaks == [22, 16, 15 if has_boxed else 16, 15], _peaks
assert hasattr(torch.autograd.Function, "clear_saved_tensors_on_access")
_x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
_w = [torch.randn(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
assert gradcheck(Block.apply, (_x, *_w))
_reference = torch.autograd.grad(composed(_x, *_w).sum(), (_x, *_w))
for _f in list(lines.values())[1:3]:
    _got = torch.autograd.grad(_f(_x, *_w).sum(), (_x, *_w))
    assert len(_got) == 4 and all(map(torch.allclose, _got, _reference))


_first = torch.randn(9, requires_grad=True) * 1
_middle = _first.exp()  # its node keeps it
_memory, _when = StorageWeakRef(_middle.untyped_storage()), []
_loss = _middle.sum()
del _middle
_first.register_hook(lambda grad: _when.append(_memory.expired()))
assert not _memory.expired()
_loss.backward()
assert _when == [True]  # before the node of _first has run


class _SwishCleared(Swish):
    clear_saved_tensors_on_access = True


class _SwishBoxed(_SwishCleared):
    boxed_grads_call = True

    @staticmethod
    def backward(ctx, grads):
        x = ctx.saved_tensors[0]
        result = slope(x)
        del x
        return result * grads.pop()


_peak = {
    f: max(live_in_backward(lambda x, f=f: f.apply(1 * x), 1))
    for f in (Swish, _SwishCleared, *([_SwishBoxed] if has_boxed else []))
}
assert len(_peak) == 2 + has_boxed and len({round(n) for n in _peak.values()}) == 1


def _freed(function):
    hidden = 1 * torch.randn(9, requires_grad=True)
    _freed.memory = StorageWeakRef(hidden.untyped_storage())
    loss = function.apply(hidden).sum()
    del hidden
    loss.backward()
    return _freed.expired


class _Watched(Swish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        result = grad_output * slope(x)
        del x
        _freed.expired = _freed.memory.expired()
        return result


class _WatchedCleared(_Watched):
    clear_saved_tensors_on_access = True


assert [_freed(f) for f in (_Watched, _WatchedCleared)] == [False, True]
_gone = []


class _Arrived(Swish):
    @staticmethod
    def backward(ctx, *grads):
        grads = grads[0] if isinstance(grads[0], list) else list(grads)
        memory = StorageWeakRef(grads[0].untyped_storage())
        grads.clear()
        _gone.append(memory.expired())
        return torch.zeros(9)


class _ArrivedBoxed(_Arrived):
    boxed_grads_call = True


for _f in (_Arrived, _ArrivedBoxed):
    (2 * _f.apply(torch.randn(9, requires_grad=True))).sum().backward()
assert _gone == [False, has_boxed], _gone
# sphinx_gallery_end_ignore

# %%
# The two lines lower the peak only if the peak comes after the release, so that of ``Swish`` stays the same. And each has a
# price. A second backward through the same graph raises:

x, weight = torch.randn(2, 3, 3).requires_grad_()
loss = BlockCleared.apply(x, weight).sum()
loss.backward(retain_graph=True)
try:
    loss.backward()
except RuntimeError as error:
    message = str(error)
    print(textwrap.fill(f"RuntimeError: {message}", 88))

# sphinx_gallery_start_ignore
_once = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"
)
assert _once in message
_raised = []


def _raises(call):
    try:
        call()
    except Exception as error:
        _raised.append(f"{type(error).__name__}: {error}")
        return _raised[-1]
    return "nothing"


_p = torch.randn(3, dtype=torch.float64, requires_grad=True)
assert _once in _raises(lambda: gradcheck(_SwishCleared.apply, _p))
assert _once in _raises(lambda: gradcheck(BlockCleared.apply, (_x, *_w)))


def _second():
    first = torch.autograd.grad(
        _SwishCleared.apply(_p).square().sum(), _p, create_graph=True
    )
    torch.autograd.grad(first[0].sum(), _p)


assert _once in _raises(_second)
_pair = []
for _f in (F.silu, _SwishCleared.apply):  # linear in the result: no second call
    (_first,) = torch.autograd.grad(_f(_p).sum(), _p, create_graph=True)
    _pair += torch.autograd.grad(_first.sum(), _p)
assert torch.allclose(*_pair)


_by_func = torch.func.grad(lambda x: _SwishCleared.apply(x).sum())(_p.detach())
assert torch.allclose(_by_func, slope(_p.detach()))


class _Forgot(Swish):
    boxed_grads_call = True  # before 2.13 nothing reads it


_message = _raises(lambda: _Forgot.apply(_p).sum().backward())
_no_list = _message.startswith("TypeError: only integer tensors of a single element")
assert _no_list if has_boxed else _message == "nothing"
_by_func = torch.func.grad(lambda x: _SwishBoxed.apply(x).sum())
assert "AttributeError" in _raises(lambda: _by_func(_p.detach()))


class _BoxedOnce(BlockBoxed):
    @staticmethod
    @once_differentiable
    def backward(ctx, grads):
        grads = grads if has_boxed else [grads]
        return layers_back(list(ctx.saved_tensors), grads)


def _first_of(function):
    loss = function.apply(_x, *_w).square().sum()
    return torch.autograd.grad(loss, _x, create_graph=True)[0]


assert _first_of(Block).requires_grad  # so that a second one can raise
assert _first_of(_BoxedOnce).requires_grad != has_boxed  # in a list: no graph, no error
assert "no second derivative" in _raises(lambda: _first_of(BlockBoxed))
assert len(_raised) == 5 + has_boxed


(_first,) = torch.autograd.grad(Block.apply(_x, *_w).exp().sum(), _x, create_graph=True)
assert "differentiate twice" in _raises(lambda: _first.sum().backward())
from torch.utils.checkpoint import checkpoint


def _live_after(function):
    leaf = torch.randn(100, 100, requires_grad=True)
    with Live() as live:
        loss = (2 * function(1 * leaf)).sum()
        _ = loss + 1  # after the arguments of sum are gone
    return round(live.counts[-1])


_counts = [
    _live_after(f)
    for f in (swish, Swish.apply, lambda x: checkpoint(swish, x, use_reentrant=False))
]
assert _counts == [2, 1, 1], _counts
with saved_tensors_hooks(lambda t: t.bfloat16(), lambda t: t.float()):
    _x = torch.randn(50, requires_grad=True)
    _y = swish(_x)
    assert _y.grad_fn._raw_saved_self is not None
(_rounded,) = torch.autograd.grad(_y.sum(), _x)
assert 0 < (_rounded - slope(_x.detach())).norm() < 0.05
# sphinx_gallery_end_ignore

# %%
# :ref:`gradcheck <sphx_glr_gallery_functions_gradcheck.py>` raises it as well. So does a second derivative that needs this
# ``backward`` again. Test the class without the line.
#
# With ``boxed_grads_call``, ``backward`` gets a list. If you multiply the list by a tensor, the message is *only integer
# tensors of a single element can be converted to an index*. But ``torch.func.grad`` still passes tensors.
# ``once_differentiable`` overlooks the list, so ``BlockBoxed`` raises its own error.

# %%
# Less memory without a Function
# ------------------------------
# - :ref:`checkpoint <sphx_glr_gallery_memory_checkpointing.py>` keeps the input, as ``Swish`` does, without a derivative to
#   write.
# - :ref:`Hooks for saved tensors <sphx_glr_gallery_memory_saved_tensor_hooks.py>` can round what a whole model saves.
# - :ref:`torch.compile <sphx_glr_gallery_memory_memory_under_compile.py>` chooses what to save and what to compute again.

# %%
# What people get wrong
# ---------------------
# **A mask where the output is free.** Before a ``Linear``, ``ReluMask`` keeps one byte per element more than ``F.relu``.

# %%
# **A tensor as an attribute of ctx.** A plain ``backward()`` frees what you gave to ``save_for_backward``. But an attribute
# stays as long as the graph, so as long as ``loss``:


class SwishOnCtx(Swish):
    @staticmethod
    def setup_context(ctx, inputs, output):
        (ctx.x,) = inputs

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * slope(ctx.x)


for function in (Swish, SwishOnCtx):
    hidden = before(data)
    memory = StorageWeakRef(hidden.untyped_storage())
    loss = function.apply(hidden).sum()
    del hidden
    loss.backward()
    print(f"{function.__name__:<10} freed after backward: {memory.expired()}")

# sphinx_gallery_start_ignore
assert not memory.expired()
del loss
assert memory.expired()
_expired = []
for _function in (Swish, SwishOnCtx):
    _h = before(data)
    _memory = StorageWeakRef(_h.untyped_storage())
    _loss = _function.apply(_h).sum()
    del _h
    _loss.backward()
    _expired.append(_memory.expired())
assert _expired == [True, False]
assert alone(SwishOnCtx.apply) == 0  # the hooks do not see it


import gc


class _OutputOnCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y


gc.collect()
gc.freeze()  # the next gc.collect() is quick
gc.disable()
_y = _OutputOnCtx.apply(before(data))
_memory = StorageWeakRef(_y.untyped_storage())
_y.sum().backward()
del _y
assert not _memory.expired()
gc.enable()
gc.collect()
assert _memory.expired()
gc.unfreeze()
# sphinx_gallery_end_ignore

# %%
# If the attribute is the *output*, the output and its node refer to :ref:`each other
# <sphx_glr_gallery_functions_context_methods.py>`. One such output stays until Python's garbage collector finds it.

# %%
# **A view of a large tensor.** A saved view keeps its whole storage. So if a Function gets 1 of 40 columns, clone it, unless
# something else needs the large tensor:

part = before(data)
print("view: ", count_saved_bytes(Swish.apply, part[:, :1]), "bytes")
print("clone:", count_saved_bytes(Swish.apply, part[:, :1].clone()), "bytes")

# sphinx_gallery_start_ignore
assert count_saved_bytes(Swish.apply, part[:, :1]) == 64 * 40 * 4
assert count_saved_bytes(Swish.apply, part[:, :1].clone()) == 64 * 4
_features = []


def _listed(x):
    _features.append(torch.sigmoid(x))
    return x * _features[-1]


_loss = _listed(before(data)).sum()
_loss.backward()
_memory = StorageWeakRef(_features[0].untyped_storage())
assert not _memory.expired()
_features.clear()
assert _memory.expired()
before.zero_grad()
# sphinx_gallery_end_ignore

# %%
# **Holding the tensor yourself.** A list of features, or a hook that stores them, keeps what the Function drops.

# %%
# **A second derivative.** ``SwishBfloat16`` saves a tensor that it made itself. For autograd that is a constant, so the second
# derivative is silently wrong:

for function in (Swish, SwishBfloat16):
    x = torch.tensor(1.0, requires_grad=True)
    (first,) = torch.autograd.grad(function.apply(x) ** 2, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    print(f"{function.__name__:<13} first {first:.3f}   second {second:.3f}")

# sphinx_gallery_start_ignore
_seconds = []
for _f in (F.silu, Swish.apply, SwishBfloat16.apply):
    _x = torch.tensor(1.0, requires_grad=True)
    (_g,) = torch.autograd.grad(_f(_x) ** 2, _x, create_graph=True)
    _seconds.append(torch.autograd.grad(_g, _x)[0].item())
assert abs(_seconds[0] - _seconds[1]) < 1e-5 and abs(_seconds[0] - _seconds[2]) > 0.1
for _f in (ReluMask, ReluBits):
    assert torch.autograd.gradgradcheck(_f.apply, _p + 0.3)
# sphinx_gallery_end_ignore

# %%
# If you save such a tensor, :ref:`forbid the second derivative <sphx_glr_gallery_functions_double_backward.py>`. The masks of
# ReLU do no harm: the derivative of a mask is zero.

# %%
# **Writing into the saved tensor.** ``Swish`` saves its input, and ``+=`` changes it:

hidden = before(data)
activated = Swish.apply(hidden)
hidden += 1
try:
    activated.sum().backward()
except RuntimeError as error:
    message = f"RuntimeError: {error}".partition(" Hint")[0]
    print(textwrap.fill(message, 88))

# sphinx_gallery_start_ignore
assert "modified by an inplace operation" in message
for _f in (ReluMask, ReluBits, SwishBfloat16, lambda x: Softcap.apply(x, 3.0)):
    _h = before(data)
    _y = getattr(_f, "apply", _f)(_h)
    _h += 1
    _y.sum().backward()
_raised = []
for _f in (lambda x: Softcap.apply(x, 3.0), F.relu):
    _y = _f(before(data))
    _y += 1
    try:
        _y.sum().backward()
    except RuntimeError as error:
        _raised.append("modified by an inplace operation" in str(error))
assert _raised == [True, True]
_leaf = torch.ones(3, requires_grad=True)
_h = 1 * _leaf
_loss = SwishOnCtx.apply(_h).sum()
_h += 1
_wrong = torch.autograd.grad(_loss, _leaf)[0] - slope(torch.ones(3))
assert _wrong.abs().min() > 0.1
before.zero_grad()
# sphinx_gallery_end_ignore

# %%
# A Function that saves its output raises this if you write into its output instead. The gradient of ``SwishOnCtx`` is silently
# wrong.

# %%
# Exercise
# --------
# ``F.silu(a) * b`` is the core of SwiGLU. It keeps ``a``, ``b`` and ``F.silu(a)``. Write a Function that keeps two tensors, and
# one tensor if ``a`` needs no gradient.
#
# .. solution::
#
# Compute ``F.silu(a)`` again. ``b`` is needed for the gradient of ``a`` only, so look at ``ctx.needs_input_grad``:


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(a, b):
        return F.silu(a) * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b = inputs
        ctx.save_for_backward(a, b if ctx.needs_input_grad[0] else None)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        needs_a, needs_b = ctx.needs_input_grad
        grad_a = grad_output * b * slope(a) if needs_a else None
        return grad_a, grad_output * F.silu(a) if needs_b else None


a, b = torch.randn(2, 10, dtype=torch.float64).unbind()
a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
print("by hand:", count_saved_bytes(lambda a, b: F.silu(a) * b, a, b) // 80, "tensors")
print("SwiGLU: ", count_saved_bytes(SwiGLU.apply, a, b) // 80, "tensors")
print("a needs no gradient:", count_saved_bytes(SwiGLU.apply, a.detach(), b) // 80)
print("gradcheck:", gradcheck(SwiGLU.apply, (a, b)))

# sphinx_gallery_start_ignore
assert count_saved_bytes(lambda a, b: F.silu(a) * b, a, b) == 240
assert count_saved_bytes(SwiGLU.apply, a, b) == 160 == 2 * a.nbytes
assert count_saved_bytes(SwiGLU.apply, a.detach(), b) == 80
assert gradcheck(SwiGLU.apply, (a, b)) and gradcheck(SwiGLU.apply, (a.detach(), b))
assert gradcheck(SwiGLU.apply, (a, b.detach()))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, operation by operation.
# - :ref:`sphx_glr_gallery_functions_context_methods.py`: what happens without each.
# - :ref:`sphx_glr_gallery_functions_derive_a_backward.py`, if you do not know the derivative yet.
# - :ref:`sphx_glr_gallery_memory_forecast_a_training_step.py`: how many bytes you need in total.
# - `Extending PyTorch <https://docs.pytorch.org/docs/stable/notes/extending.html>`__, with
#   ``clear_saved_tensors_on_access`` (`pytorch#173833 <https://github.com/pytorch/pytorch/pull/173833>`__) and
#   ``boxed_grads_call`` (`pytorch#177837 <https://github.com/pytorch/pytorch/pull/177837>`__).
