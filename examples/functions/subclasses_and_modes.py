r"""
Tensor subclasses and TorchDispatchMode
=======================================

.. index::
   single: TorchDispatchMode, TorchFunctionMode
   single: log every operation of a model, also in backward
   single: intercept, replace or forbid a torch call; monkey patch torch
   single: subclass torch.Tensor, carry metadata or a unit along
   single: RecursionError in __torch_function__, DisableTorchFunctionSubclass
   single: default implementation of __deepcopy__() for non-wrapper subclasses
   single: _make_wrapper_subclass, wrapper tensor
   single: FlopCounterMode returns 0 for an LSTM
   single: TorchDispatchMode with threads, DataParallel or torch.compile

.. in-short::

   A ``TorchDispatchMode`` sees operations below autograd, in forward and in backward. A ``TorchFunctionMode`` sees Python
   calls, such as ``F.linear``, above autograd, and ``backward()`` is one call. A tensor subclass sees such calls on its own
   tensors. If a dispatch mode changes a result, autograd does not record the change. Run the model inside the mode:

   .. code-block:: python

      with Operations():  # your TorchDispatchMode
          model(x).sum().backward()
"""

# %%
# The problem: an operation between two modules
# ---------------------------------------------
# You want to log, count or forbid operations. A module hook misses ``x * mask`` between two modules, but a *mode* sees it: a
# context in which each operation goes through your method, which returns the result. There are two kinds:

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import FlopCounterMode


class CallNames(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class OperationNames(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
inputs, target = torch.randn(8, 4), torch.randn(8, 3)

with CallNames() as calls, OperationNames() as operations:
    F.mse_loss(model(inputs), target).backward()
print("calls:     ", *calls.seen)
print("operations:", *operations.seen)

# %%
# ``linear`` is one Python call and two operations. In backward, the function mode sees one call, and the dispatch mode sees
# what the nodes run. The figure leaves out ``detach``.
#
# .. how-measured:: The two modes note the nodes too, and all names are written into three columns.

import matplotlib.pyplot as plt

MODES = ["TorchFunctionMode", "autograd", "TorchDispatchMode"]


class CallsAndNodes(CallNames):
    def __init__(self):
        super().__init__()
        self.nodes = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.seen.append(func.__name__)
        self.nodes.append(getattr(result, "grad_fn", None))
        return result


class OperationsAndNodes(OperationNames):
    def __init__(self):
        super().__init__()
        self.nodes = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is not torch.ops.aten.detach.default:
            self.seen.append(func.overloadpacket.__name__)
            self.nodes.append(torch._C._current_autograd_node())
        return func(*args, **(kwargs or {}))


def recorded(calls):
    rows, known = [], {None}
    for call, node in zip(calls.seen, calls.nodes, strict=True):
        new = [node]
        for node in new:
            new += [n for n, _ in node.next_functions if n and n not in known]
        known.update(new)
        new = [node for node in new if not hasattr(node, "variable")]
        rows += [(call, node.name()) for node in reversed(new)]
    return rows


def ran(operations):
    rows = []
    for name, node in zip(operations.seen, operations.nodes, strict=True):
        row = ["backward", node.name() if node else ""]
        if rows and rows[-1][:2] == row:
            rows[-1][2] += f", {name}"
        else:
            rows.append([*row, name])
    return rows


def record_both_passes():
    model.zero_grad()
    with CallsAndNodes() as calls, OperationsAndNodes() as operations:
        loss = F.mse_loss(model(inputs), target)
    with OperationsAndNodes() as later:
        loss.backward()
    rows = zip(recorded(calls), operations.seen, strict=True)
    return [(*row, name) for row, name in rows], ran(later)


def draw_both_passes(parts):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    places, y = (0, 3, 6.3), 0
    for place, name in zip(places, MODES, strict=True):
        ax.text(place, -1.2, name, weight="bold", va="center")
    for rows in parts:
        ax.axhline(y - 0.6, color="#cbd5e1", linewidth=1)
        above = ["", "", ""]
        for row in rows:
            colors = ("#2563eb", "#64748b", "#c2410c")
            for column, (place, color) in enumerate(zip(places, colors, strict=True)):
                style = {"color": color, "va": "center", "family": "monospace"}
                if column == 2 or row[column] != above[column]:
                    ax.text(place, y, row[column], **style)
            above, y = row, y + 1
        y += 0.4
    ax.set(xlim=(-0.1, 9.7), ylim=(y - 0.8, -1.7))
    ax.set_title("Forward and backward, as each of them sees it")
    ax.axis("off")


# %%
# Each row is one operation:

# figure: Three columns. Forward: the call linear has the nodes TBackward0 and AddmmBackward0 and the operations t and addmm;
#   relu has ReluBackward0 and relu; mse_loss has MseLossBackward0 and mse_loss. Backward: one call, backward. The operations
#   are ones_like, then mse_loss_backward in MseLossBackward0, threshold_backward in ReluBackward0, t, mm, t, sum and view in
#   AddmmBackward0, and t in TBackward0.
draw_both_passes(record_both_passes())

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
assert calls.seen == ["linear", "relu", "mse_loss", "backward"]
forward, later = record_both_passes()
assert forward == [
    ("linear", "TBackward0", "t"),
    ("linear", "AddmmBackward0", "addmm"),
    ("relu", "ReluBackward0", "relu"),
    ("mse_loss", "MseLossBackward0", "mse_loss"),
]
assert later == [
    ["backward", "", "ones_like"],
    ["backward", "MseLossBackward0", "mse_loss_backward"],
    ["backward", "ReluBackward0", "threshold_backward"],
    ["backward", "AddmmBackward0", "t, mm, t, sum, view"],
    ["backward", "TBackward0", "t"],
]

_seen = []
_masked = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
for _module in _masked.modules():
    _module.register_forward_hook(
        lambda module, *_: _seen.append(type(module).__name__)
    )
with CallNames() as _calls, OperationNames() as _operations:
    _masked[1](_masked[0](inputs) * (target > 0))
assert _seen == ["Linear", "ReLU"]
assert "mul" in _calls.seen and "mul" in _operations.seen
# sphinx_gallery_end_ignore

# %%
# Why: one mode above autograd, one below
# ---------------------------------------
# These two also print the node of each result:


def node_of(result):  # may be a tuple, a size, or None
    node = getattr(result, "grad_fn", None)
    return node and node.name()


class Calls(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        print("call:     ", func.__name__, node_of(result))
        return result


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        print("operation:", func, node_of(result))
        return result


with Calls(), Operations():
    y = F.linear(inputs, model[0].weight)

# sphinx_gallery_start_ignore
import contextlib
import io

with contextlib.redirect_stdout(io.StringIO()) as _printed, Calls(), Operations():
    F.linear(inputs, model[0].weight)
_lines = _printed.getvalue().strip().split("\n")
assert [_l.split()[0] for _l in _lines] == ["operation:"] * 2 + ["call:"]
assert [_l.endswith("None") for _l in _lines] == [True, True, False]
# sphinx_gallery_end_ignore

# %%
# The operations run inside the call. In the function mode, the result of ``linear`` has its ``grad_fn``. In the dispatch mode,
# the results have none, because autograd adds the nodes later.
#
# A subclass takes a label along
# ------------------------------
# A subclass sees only calls with one of its own tensors among the arguments. A result gets the label of the first ``Labeled``
# argument:


class Labeled(torch.Tensor):
    label = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        given = [t.label for t in tree_leaves((args, kwargs)) if isinstance(t, cls)]
        for tensor in tree_leaves(result):
            if isinstance(tensor, cls):
                tensor.label = given[0] if given else None
        return result


x = torch.ones(2, 4).as_subclass(Labeled).requires_grad_()
x.label = "camera 3"
(x * 2).sum().backward()

# %%
# .. how-measured:: Each expression, and the type and the label of what it returns. An error is named.

import io
import pickle
import warnings

import pandas as pd


def reloaded(tensor):
    torch.save(tensor, file := io.BytesIO())
    file.seek(0)
    return torch.load(file)


EXPRESSIONS = {
    "x * 2": lambda: x * 2,
    "x[0]": lambda: x[0],
    "torch.cat([plain, x])": lambda: torch.cat([torch.ones(2, 4), x]),
    "nn.Linear(4, 1)(x)": lambda: nn.Linear(4, 1)(x),
    "x.detach()": lambda: x.detach(),
    "x.data": lambda: x.data,
    "nn.Parameter(x)": lambda: nn.Parameter(x),
    "x.grad": lambda: x.grad,
    "torch.tensor(x)": lambda: torch.tensor(x),
    "torch.func.vmap(f)(x)": lambda: torch.func.vmap(torch.sin)(x),
    "copy.deepcopy(x)": lambda: copy.deepcopy(x),
    "torch.load of a saved x": lambda: reloaded(x),
}


def described(expression):
    try:
        with warnings.catch_warnings(action="ignore"):  # of torch.tensor(x)
            result = expression()
    except (RuntimeError, pickle.UnpicklingError) as error:
        return type(error).__name__, ""
    return type(result).__name__, getattr(result, "label", "")


def tabulate_expressions():
    found = {text: described(expression) for text, expression in EXPRESSIONS.items()}
    return pd.DataFrame(found, ["type", "label"]).T.rename_axis(columns="expression")


# %%
# What keeps the subclass and the label:

# sphinx_gallery_start_ignore
table = {text: described(expression) for text, expression in EXPRESSIONS.items()}
_kept = ("Labeled", "camera 3")
assert all(table[_name] == _kept for _name in list(EXPRESSIONS)[:7])
assert [table[_name] for _name in list(EXPRESSIONS)[7:]] == [
    ("Tensor", ""),
    ("Tensor", ""),
    ("Tensor", ""),
    ("RuntimeError", ""),
    ("UnpicklingError", ""),
]
_labeled = _layer = nn.Linear(4, 2)
_layer.weight = nn.Parameter(x)
assert [name for name, _ in _layer.named_parameters()] == ["weight", "bias"]
assert isinstance(_layer.weight, nn.Parameter) and type(_layer.weight) is Labeled
_layer(torch.ones(3, 4)).sum().backward()
assert type(_layer.weight.grad) is torch.Tensor
assert type(x.grad) is torch.Tensor
_seen = []


class _Seen(Labeled):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        _seen.append(func)
        return super().__torch_function__(func, types, args, kwargs)


_own = torch.ones(2).as_subclass(_Seen)
with warnings.catch_warnings(action="ignore"):
    torch.tensor(_own)
assert _seen == []
for _f in (torch.ones, torch.zeros, torch.rand):
    (_f(2) + 1).sum()
assert _seen == []
for _optimizer in (torch.optim.SGD, torch.optim.Adam):
    _optimizer(_layer.parameters(), lr=0.1).step()
    assert type(_layer.weight) is Labeled and _layer.weight.label == "camera 3"
# sphinx_gallery_end_ignore
tabulate_expressions()

# %%
# The subclass misses ``torch.tensor(x)``, and autograd stored a plain gradient in ``x.grad``.

# %%
# A wrapper: a subclass below autograd
# ------------------------------------
# This wrapper takes the shape of its ``inner`` tensor, and has no memory. It gets the operations of both passes, and notes
# them:


class Noted(torch.Tensor):
    seen = []

    @staticmethod
    def __new__(cls, inner):
        size, kind = inner.shape, {"dtype": inner.dtype, "device": inner.device}
        return cls._make_wrapper_subclass(cls, size, strides=inner.stride(), **kind)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.overloadpacket.__name__)
        args, kwargs = tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, cls, func(*args, **kwargs))

    def __repr__(self):  # without it, printing raises
        return f"Noted({self.inner})"


w = Noted(torch.tensor([1.0, 2.0])).requires_grad_()
loss = (w * w).sum()
loss.backward()

# graph: loss -- Autograd records the operations of the wrapper

print(*Noted.seen)
print("w.grad:", w.grad)
print("inner requires grad:", w.inner.requires_grad)

# sphinx_gallery_start_ignore
assert type(w.grad) is Noted and w.grad.inner.tolist() == [2, 4]
assert not w.inner.requires_grad and w.inner.grad is None and w.is_leaf
assert w.data_ptr() == 0 and repr(w) == "Noted(tensor([1., 2.]))"


class _NoRepr(Noted):
    __repr__ = torch.Tensor.__repr__


_raised = []
try:
    repr(_NoRepr(torch.ones(2)))
except TypeError as _error:
    _raised.append(str(_error))
assert len(_raised) == 1
assert Noted.seen[:2] == ["mul", "sum"] and {"expand", "mul"} <= set(Noted.seen[2:])
_layer = nn.Linear(2, 2)
_layer.weight = nn.Parameter(Noted(_layer.weight.detach()))
assert isinstance(_layer.weight, nn.Parameter) and type(_layer.weight) is Noted
_layer(torch.ones(3, 2)).sum().backward()
assert type(_layer.weight.grad) is Noted
assert _layer.weight.grad.inner.tolist() == [[3, 3], [3, 3]]
_written = Noted(torch.ones(2))
_written.data = Noted(torch.zeros(2))
assert _written.inner.tolist() == [1, 1]
_before = _layer.weight.inner.clone()
torch.optim.SGD(_layer.parameters(), lr=1.0).step()
assert torch.allclose(_layer.weight.inner, _before - 3)
_lost = _before.requires_grad_() * 1  # what is recorded before the wrapper
assert not Noted(_lost).requires_grad
for _optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    for _dtype in (torch.float16, torch.float32, torch.float64):
        _pair = [nn.Linear(2, 2, dtype=_dtype)]
        _pair.append(copy.deepcopy(_pair[0]))
        _pair[0].weight = nn.Parameter(Noted(_pair[0].weight.detach()))
        _pair[0] = copy.deepcopy(_pair[0])
        for _layer in _pair:
            _steps = _optimizer(_layer.parameters(), lr=0.1)
            for _ in range(2):
                _steps.zero_grad()
                _layer(torch.ones(3, 2, dtype=_dtype)).sum().backward()
                _steps.step()
            _layer.load_state_dict(_layer.state_dict())
        assert torch.allclose(_pair[0].weight.inner, _pair[1].weight, atol=1e-2)
for _swapped in (False, True):
    for _convert in (nn.Module.half, nn.Module.double):
        _layer = nn.Linear(2, 2)
        _layer.weight = nn.Parameter(Noted(_layer.weight.detach()))
        torch.__future__.set_swap_module_params_on_conversion(_swapped)
        _convert(_layer)
        torch.__future__.set_swap_module_params_on_conversion(False)
        assert (_layer.weight.inner.dtype == _layer.weight.dtype) == _swapped
        assert _layer.weight.dtype == _layer.bias.dtype != torch.float32
        _raised = []
        try:
            _layer(torch.ones(3, 2, dtype=_layer.bias.dtype))
        except RuntimeError as _error:
            _raised.append(str(_error))
        assert len(_raised) == (not _swapped)
        if _swapped:
            _layer(torch.ones(3, 2, dtype=_layer.bias.dtype)).sum().backward()
# sphinx_gallery_end_ignore

# %%
# ``w`` is the leaf, and autograd computes with wrappers in backward. So ``w.grad`` is a wrapper, too. But ``Noted(t)`` is a new
# leaf, so gradients end there. Before ``layer.half()``, call ``torch.__future__.set_swap_module_params_on_conversion(True)``.
# Without it, ``inner`` stays ``float32``, because it misses a write to ``.data``.
#
# Which one to use
# ----------------
#
# .. list-table::
#    :header-rows: 1
#    :widths: 52 48
#
#    * - you want to
#      - use
#    * - count FLOPs
#      - ``FlopCounterMode``
#    * - find the operation that made a NaN
#      - a dispatch mode: :ref:`NanTrap <sphx_glr_gallery_debugging_finding_nans.py>`
#    * - run without memory, or without a GPU
#      - ``FakeTensorMode``, a dispatch mode
#    * - replace a Python call, with its derivative
#      - a function mode
#    * - take a unit or a name along
#      - a subclass with ``__torch_function__``
#    * - store the numbers in a different form, for example quantized
#      - a wrapper
#    * - read or change the gradient of one tensor
#      - a :ref:`hook <sphx_glr_gallery_differentiation_hooks.py>`
#    * - see or change what is saved for backward
#      - :ref:`saved_tensors_hooks <sphx_glr_gallery_memory_saved_tensor_hooks.py>`
#    * - write a different derivative
#      - a :ref:`Function <sphx_glr_gallery_functions_exp_function.py>`

# %%
# What people get wrong
# ---------------------
# **Changing a result below autograd.** Both modes multiply a result by 10. The gradient at 2 should be 10 for ``relu``, and
# 1.05 for ``sigmoid``:

aten = torch.ops.aten


class TenAbove(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 10 if func in (torch.relu, torch.sigmoid) else result


class TenBelow(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        found = func in (aten.relu.default, aten.sigmoid.default)
        return result * 10 if found else result


for mode in (TenAbove, TenBelow):
    for function in (torch.relu, torch.sigmoid):
        point = torch.tensor(2.0, requires_grad=True)
        with mode():
            y = function(point)
        y.backward()
        text = f"value {y.item():5.2f}, gradient {point.grad.item():6.2f}"
        print(f"{mode.__name__} {function.__name__:<8}{text}")

# sphinx_gallery_start_ignore
_found = {}
for _mode in (TenAbove, TenBelow):
    for _function in (torch.relu, torch.sigmoid):
        _point = torch.tensor(2.0, requires_grad=True)
        with _mode():
            _y = _function(_point)
        _found[_mode, _function] = _y, torch.autograd.grad(_y, _point)[0]
_sigmoid = torch.tensor(2.0).sigmoid()
assert _found[TenAbove, torch.relu] == (20, 10) and _found[TenBelow, torch.relu] == (
    20,
    1,
)
assert torch.allclose(
    _found[TenAbove, torch.sigmoid][1], 10 * _sigmoid * (1 - _sigmoid)
)
assert abs(_found[TenAbove, torch.sigmoid][1] - 1.05) < 0.005
_y, _gradient = _found[TenBelow, torch.sigmoid]
assert torch.allclose(_y, 10 * _sigmoid) and torch.allclose(_gradient, _y * (1 - _y))
assert abs(_gradient + 68.77) < 0.005 and abs(_y - 8.81) < 0.005
assert _found[TenAbove, torch.relu][0].grad_fn.name() == "MulBackward0"
assert _found[TenBelow, torch.relu][0].grad_fn.name() == "ReluBackward0"
# sphinx_gallery_end_ignore

# %%
# Below autograd the factor is not recorded, so autograd applies its own formula to what came back: for ``relu`` it gives 1, for
# ``sigmoid`` :math:`y (1 - y)` with ``y = 8.81``. Change values above autograd, or write a :ref:`Function
# <sphx_glr_gallery_functions_exp_function.py>`.
#
# **Looking for one name.** In a function mode, ``torch.relu``, ``F.relu`` and ``x.relu()`` are three functions. In a dispatch
# mode, ``@`` is ``mm``, ``bmm`` or a third operation, and may have views around it:

for sizes in ([(2, 3), (3, 4)], [(5, 2, 3), (5, 3, 4)], [(3,), (3,)]):
    a, b = map(torch.ones, sizes)
    with OperationNames() as operations:
        a @ b
    print(*operations.seen)

with torch.inference_mode(), OperationNames() as operations:
    a @ b
print("inference_mode:", *operations.seen)

# sphinx_gallery_start_ignore
_functions = []


class _Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        _functions.append(func)
        return func(*args, **(kwargs or {}))


with _Functions(), OperationNames() as _operations:
    torch.relu(inputs), F.relu(inputs), inputs.relu(), nn.ReLU()(inputs)
assert _functions == [torch.relu, F.relu, torch.Tensor.relu, F.relu]
assert len(set(_functions)) == 3 and _operations.seen == ["relu"] * 4
with TenAbove():
    assert torch.equal(nn.ReLU()(inputs), inputs.clamp(0))
_names = []
for _sizes in ([(2, 3), (3, 4)], [(5, 2, 3), (5, 3, 4)], [(3,), (3,)]):
    with OperationNames() as _operations, CallNames() as _calls:
        torch.matmul(*(torch.randn(_size) for _size in _sizes))
    assert _calls.seen == ["randn", "randn", "matmul"]
    _names.append(_operations.seen[2:])
assert _names[0] == ["mm"] and _names[2] == ["dot"]
assert "bmm" in _names[1] and {"expand", "view"} <= set(_names[1])
assert operations.seen == ["matmul"]
# sphinx_gallery_end_ignore

# %%
# Under ``inference_mode``, the mode sees ``matmul`` itself (`pytorch#126268
# <https://github.com/pytorch/pytorch/issues/126268>`__). And one operation may be a whole layer:

for device in ("cpu", "meta"):
    layer, sequence = nn.LSTM(4, 3, device=device), torch.ones(5, 2, 4, device=device)
    with FlopCounterMode(display=False) as counter, OperationNames() as operations:
        layer(sequence)
    whole = "mkldnn_rnn_layer" in operations.seen
    print(device, "FLOPs:", counter.get_total_flops(), "mkldnn_rnn_layer:", whole)

# sphinx_gallery_start_ignore
with FlopCounterMode(display=False) as _counter, OperationNames() as _operations:
    nn.LSTM(4, 3)(torch.ones(5, 2, 4))
_fused = "mkldnn_rnn_layer" in _operations.seen
assert (_counter.get_total_flops() == 0) == _fused
assert _fused or not torch.backends.mkldnn.is_available()
assert counter.get_total_flops() == 2 * 4 * 3 * 2 * 5 * (4 + 3) == 1680 and not whole
assert operations.seen.count("addmm") + operations.seen.count("mm") > 5
with FlopCounterMode(display=False) as _counter:
    _loss = model(inputs).sum()
assert _counter.get_total_flops() == 2 * 8 * 4 * 3
with FlopCounterMode(display=False) as _counter:
    _loss.backward()  # the dispatch mode sees backward, too
assert _counter.get_total_flops() == 2 * 8 * 4 * 3
# sphinx_gallery_end_ignore

# %%
# On this CPU, one operation computes this ``float32`` LSTM, and the counter has no formula for it (`tnt#624
# <https://github.com/meta-pytorch/tnt/issues/624>`__). On ``meta``, it is many.
#
# **Starting a thread.** A mode belongs to the thread that entered it. So it misses this pool of threads, and the threads of
# ``nn.DataParallel`` (`pytorch#103719 <https://github.com/pytorch/pytorch/issues/103719>`__).

with CallNames() as calls, OperationNames() as operations, ThreadPoolExecutor() as pool:
    pool.submit(torch.exp, inputs).result()
print(calls.seen, operations.seen)

# sphinx_gallery_start_ignore
import inspect
import sys

assert calls.seen == operations.seen == []
_module = sys.modules["torch.nn.parallel.parallel_apply"]
assert "threading.Thread(" in inspect.getsource(_module)


def _inside():
    with OperationNames() as operations:
        inputs.exp()
    return operations.seen


with OperationNames() as _operations, ThreadPoolExecutor() as _pool:
    assert _pool.submit(_inside).result() == ["exp"]
assert _operations.seen == []
# sphinx_gallery_end_ignore

# %%
# Enter a mode in the function that the thread runs.
#
# **Calling func in the subclass.** There, ``func`` finds the subclass again:


class Endless(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


# sphinx_gallery_start_ignore
_trace = sys.gettrace()
sys.settrace(None)  # Python drops a trace function that meets a RecursionError
# sphinx_gallery_end_ignore
try:
    torch.ones(2).as_subclass(Endless) + 1
except RecursionError as error:
    message = str(error)
    print(f"RecursionError: {message[:32]}")


# sphinx_gallery_start_ignore
class _Printing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        str(args)
        return super().__torch_function__(func, types, args, kwargs)


_raised = []
try:
    torch.ones(2).as_subclass(_Printing) + 1
except RecursionError as _error:
    _raised.append("printing")
sys.settrace(_trace)
assert message.startswith("maximum recursion depth exceeded")


class _Disabled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            assert "1." in str(args)  # printing works, too
            return func(*args, **(kwargs or {}))


torch.ones(2).as_subclass(_Disabled) + 1
assert _raised == ["printing"]
# sphinx_gallery_end_ignore

# %%
# Call ``super().__torch_function__`` in a subclass. To print ``args`` there, use ``torch._C.DisableTorchFunctionSubclass()``,
# or it raises this error too (`pytorch#55284 <https://github.com/pytorch/pytorch/issues/55284>`__). In a mode, call ``func``.
#
# **Copying a model with a Labeled parameter.** In the table, ``deepcopy`` raises *The default implementation of __deepcopy__()
# for non-wrapper subclasses …* (`vision#7698 <https://github.com/pytorch/vision/issues/7698>`__). Define ``new_empty``, and for
# empty tensors ``clone`` (`MONAI#4699 <https://github.com/Project-MONAI/MONAI/issues/4699>`__):


class Copyable(Labeled):
    def labeled(self, tensor):
        result = tensor.as_subclass(type(self))
        result.label = self.label
        return result

    def new_empty(self, *args, **kwargs):
        return self.labeled(super().new_empty(*args, **kwargs))

    def clone(self, *args, **kwargs):  # for size 0
        return self.labeled(super().clone(*args, **kwargs))


weight = nn.Parameter(x.detach().as_subclass(Copyable))
weight.label = x.label
layer = nn.Linear(4, 2)
layer.weight = weight
twin = copy.deepcopy(layer)
print(type(twin.weight).__name__, twin.weight.label, twin.weight is not weight)

# sphinx_gallery_start_ignore
_raised = []
for _thing in (x, _labeled):
    try:
        copy.deepcopy(_thing)
    except RuntimeError as _error:
        _raised.append(str(_error))
_said = "The default implementation of __deepcopy__() for non-wrapper subclasses"
assert len(_raised) == 2 and all(message.startswith(_said) for message in _raised)


assert isinstance(twin.weight, nn.Parameter) and twin.weight.requires_grad
assert type(twin.weight) is Copyable and twin.weight.label == "camera 3"
assert torch.equal(twin.weight, weight)
assert twin.weight.data_ptr() != weight.data_ptr()
assert [_name for _name, _ in twin.named_parameters()] == ["weight", "bias"]
for _t in (torch.tensor(2.0), torch.ones(0), torch.ones(2, 3).T, torch.arange(2)):
    _copied = copy.deepcopy(_t.as_subclass(Copyable))
    assert type(_copied) is Copyable and torch.equal(_copied, _t)
    assert _copied.shape == _t.shape and _copied.dtype == _t.dtype
assert torch.autograd.grad((weight.clone() * 3).sum(), weight)[0].unique() == 3
assert weight.clone().label == weight.new_empty(2).label == "camera 3"
for _optimizer in (torch.optim.SGD, torch.optim.Adam):
    _trained = copy.deepcopy(twin)
    _trained(torch.ones(3, 4)).sum().backward()
    _optimizer(_trained.parameters(), lr=0.1).step()
    _trained.load_state_dict(copy.deepcopy(_trained.state_dict()))
    _trained = copy.deepcopy(_trained).double()
    assert type(_trained.weight) is Copyable and _trained.weight.label == "camera 3"


class _OnlyNewEmpty(Labeled):
    def new_empty(self, *args, **kwargs):
        return super().new_empty(*args, **kwargs).as_subclass(type(self))


assert type(copy.deepcopy(torch.ones(1).as_subclass(_OnlyNewEmpty))) is _OnlyNewEmpty
_raised = []
try:
    copy.deepcopy(torch.ones(0).as_subclass(_OnlyNewEmpty))
except RuntimeError as _error:
    _raised.append(str(_error))
assert len(_raised) == 1 and "implement clone()" in _raised[0]
with torch.serialization.safe_globals([Labeled]):
    _loaded = reloaded(x)
    _state = reloaded(_labeled.state_dict())
assert type(_loaded) is Labeled and _loaded.label == "camera 3"
assert type(_state["weight"]) is Labeled
_ran = []


def _backend(graph, example_inputs):
    def run(*args):
        _ran.append("compiled")
        return graph(*args)

    return run


_compiled = torch.compile(lambda t: t.sin() + 1, backend=_backend)
_compiled(torch.ones(3))
assert _ran == ["compiled"]
with OperationNames() as _operations:
    _compiled(torch.ones(3))
assert _ran == ["compiled"] and _operations.seen[-2:] == ["sin", "add"]
_compiled(torch.ones(3))
assert _ran == ["compiled"] or TORCH != (2, 13)
torch.compiler.reset()
_ran.clear()
_compiled(torch.ones(3))
assert _ran == ["compiled"]
torch.compiler.reset()
# sphinx_gallery_end_ignore

# %%
# To load ``x`` from a file, call ``torch.serialization.add_safe_globals([Labeled])`` before.
#
# **Running a compiled function under your dispatch mode.** The function then runs uncompiled. In PyTorch 2.13 it stays so when
# the mode has ended (`pytorch#190286 <https://github.com/pytorch/pytorch/issues/190286>`__), until ``torch.compiler.reset()``.

# %%
# Exercise
# --------
# ``item()``, ``float(t)`` and ``if t > 0:`` read a number, and on a GPU :ref:`item() waits
# <sphx_glr_gallery_cuda_cuda_profiler.py>`. In the solution, all three use ``aten._local_scalar_dense``. Write a mode that
# raises there. Does your mode stop ``t.tolist()`` on a CPU? What about ``t.item()`` under ``inference_mode``?
#
# .. solution::
#
# Neither: on a CPU, ``t.tolist()`` reads the memory without an operation. A function mode sees the call. Under
# ``inference_mode``, the mode sees ``item`` instead.


class NoScalars(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("a number leaves its tensor")
        return func(*args, **(kwargs or {}))


t = torch.tensor(2.0)
for use in (lambda: t.item(), lambda: float(t), lambda: t > 0 or 1, lambda: t.tolist()):
    try:
        with NoScalars(), CallNames() as calls:
            use()
        print("nothing raised, call:", *calls.seen)
    except RuntimeError as error:
        print("RuntimeError:", error)

# sphinx_gallery_start_ignore
_outcomes = []
for _use in (
    lambda: t.item(),
    lambda: float(t),
    lambda: bool(t > 0),
    lambda: [1][t > 3],
    lambda: t.tolist(),
    lambda: t[None].tolist(),
    lambda: t.numpy(),
):
    _names = CallNames()
    try:
        with NoScalars(), _names:
            _use()
        _outcomes.append(_names.seen[-1])
    except RuntimeError as _error:
        _outcomes.append(str(_error))
assert _outcomes[:4] == ["a number leaves its tensor"] * 4
assert _outcomes[4:] == ["tolist", "tolist", "numpy"]
_wide = torch.ones(2, 3, requires_grad=True).T
with OperationNames() as _operations:
    t.tolist(), _wide.tolist()
assert _operations.seen == []
with torch.inference_mode(), NoScalars(), OperationNames() as _operations:
    assert t.item() == float(t) == 2
assert _operations.seen == ["item", "item"]
from torch._subclasses.fake_tensor import FakeTensorMode

assert issubclass(FakeTensorMode, TorchDispatchMode)
with FakeTensorMode():
    assert torch.ones(10**9, 10**6, device="cuda").sum().shape == ()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_from_module_to_kernel.py`: what happens below the dispatch mode.
# - :ref:`sphx_glr_gallery_memory_forecast_a_training_step.py`: a dispatch mode that adds up memory.
# - :ref:`sphx_glr_gallery_errors_two_devices.py`: ``FakeTensorMode`` finds an error without a GPU.
# - In PyTorch's reference: `Extending PyTorch <https://docs.pytorch.org/docs/stable/notes/extending.html>`__ and
#   `torch.overrides <https://docs.pytorch.org/docs/stable/torch.overrides.html>`__.
