r"""
Where is nn.ReLU implemented? From Python to C++
================================================

.. index::
   single: source code of torch.relu
   single: derivatives.yaml
   single: native_functions.yaml

.. in-short::

   ``nn.ReLU()`` calls ``F.relu``, which calls ``torch.relu``. There Python ends: ``torch.relu`` calls the *operator*
   ``aten::relu``, in Python ``torch.ops.aten.relu``. For a dense tensor on a CPU, its C++ code is in
   ``aten/src/ATen/native/Activation.cpp``. Its gradient is one line in ``derivatives.yaml``. A different module may run several
   operators, or none.
"""

# %%
# The problem: the source code ends at torch.relu
# -----------------------------------------------
# You want to read what ``nn.ReLU`` does. You go to its ``forward``, then to ``F.relu``, then to ``torch.relu``, and there
# C++ begins. These are the main steps for a dense tensor on a CPU that requires grad, with the files of `PyTorch's repository
# <https://github.com/pytorch/pytorch/tree/v2.13.0>`__:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 16 40 44
#
#    * - step
#      - what happens
#      - written in
#    * - module
#      - ``nn.ReLU().forward`` calls ``F.relu``
#      - ``torch/nn/modules/activation.py``
#    * - function
#      - ``F.relu`` calls ``torch.relu``
#      - ``torch/nn/functional.py``
#    * - operator
#      - ``torch.relu`` calls ``aten::relu``
#      - ``aten/src/ATen/native/native_functions.yaml``
#    * - autograd
#      - adds the node ``ReluBackward0``
#      - ``tools/autograd/derivatives.yaml``
#    * - kernel
#      - ``relu`` calls ``clamp_min`` with 0
#      - ``aten/src/ATen/native/Activation.cpp``
#    * - backward
#      - the node calls ``threshold_backward``
#      - ``aten/src/ATen/native/Activation.cpp``
#
# Python has no source code for ``torch.relu``:

import inspect
from pathlib import Path
from unittest.mock import patch

import torch
import torch.nn.functional as F
import torchgen
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

try:
    print(inspect.getsource(torch.relu))
except TypeError as error:
    message = str(error)
    print(f"TypeError: {message}")

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
assert message.endswith("expected, got builtin_function_or_method")
# sphinx_gallery_end_ignore

# %%
# The first three steps have the same values, and the same node:

x = torch.tensor([-1.0, 2.0], requires_grad=True)
for relu in (nn.ReLU(), F.relu, torch.relu, torch.ops.aten.relu.default):
    y = relu(x)
    print(y.tolist(), y.grad_fn.name())

# sphinx_gallery_start_ignore
assert inspect.getsourcefile(nn.ReLU).endswith("torch/nn/modules/activation.py")
assert "F.relu(input" in inspect.getsource(nn.ReLU.forward)
assert inspect.getsourcefile(F.relu).endswith("torch/nn/functional.py")
assert "torch.relu(input)" in inspect.getsource(F.relu)
for _relu in (nn.ReLU(), F.relu, torch.relu, torch.ops.aten.relu.default):
    assert _relu(x).tolist() == [0, 2]
    assert _relu(x).grad_fn.name() == "ReluBackward0"
# sphinx_gallery_end_ignore

# %%
# Watch a model call its operators
# --------------------------------
# A ``TorchDispatchMode`` sees the operators that autograd passes on. This one notes their names:


class Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


# %%
# A linear layer, a ReLU and a loss:

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
inputs, target = torch.randn(8, 4), torch.randn(8, 3)

with Operators() as forward:
    loss = F.mse_loss(model(inputs), target)
print("forward: ", *forward.names)

# graph: loss -- One node for each operator of forward that is recorded: t, addmm, relu and mse_loss

with Operators() as backward:
    loss.backward()
print("backward:", *backward.names)

# sphinx_gallery_start_ignore
assert forward.names == ["t", "addmm", "relu", "detach", "mse_loss"]
assert [name for name in backward.names if name not in ("detach", "t")] == [
    "ones_like",
    "mse_loss_backward",
    "threshold_backward",
    "mm",
    "sum",
    "view",
]


def _nodes(root):
    """The names of the nodes behind root, without those of leaves."""
    found = [root]
    for node in found:
        found += [n for n, _ in node.next_functions if n and n not in found]
    return [node.name() for node in found if not hasattr(node, "variable")]


assert sorted(_nodes(loss.grad_fn)) == [
    "AddmmBackward0",
    "MseLossBackward0",
    "ReluBackward0",
    "TBackward0",
]
with torch.no_grad(), Operators() as _unrecorded:
    F.relu(inputs)
assert _unrecorded.names == ["relu"]
with Operators() as _saves_its_input:
    F.gelu(x)
assert _saves_its_input.names == ["gelu"]
# which node calls what: for an input that requires no grad, addmm's node calls mm once, for the weight
_order, _now = [], []
_loss = F.mse_loss(model(inputs), target)
_found = [_loss.grad_fn]
for _node in _found:
    _found += [n for n, _ in _node.next_functions if n and n not in _found]
    _node.register_prehook(lambda grads, node=_node: _now.append(node.name()))


class _ByNode(Operators):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        _order.append((_now[-1] if _now else None, func.overloadpacket.__name__))
        return func(*args, **(kwargs or {}))


with _ByNode():
    _loss.backward()
assert ("ReluBackward0", "threshold_backward") in _order
assert ("MseLossBackward0", "mse_loss_backward") in _order
assert ("AddmmBackward0", "mm") in _order
assert ("TBackward0", "t") in _order  # the operator of forward, once more
# sphinx_gallery_end_ignore

# %%
# ``nn.Linear`` runs two operators, ``t`` and ``addmm``, and leaves two nodes. The ``detach`` after ``relu`` belongs to
# autograd, which saves the result. In backward, nodes call operators too: ``ReluBackward0`` calls ``threshold_backward``.

# %%
# Where the derivative is written
# -------------------------------
# PyTorch generates the C++ of ``ReluBackward0`` from a table. The table is installed with PyTorch, in the package ``torchgen``,
# and so is the list of operators. The table's entry for ``relu``:

packaged = Path(torchgen.__file__).parent / "packaged"


def entry(file, beginning):
    text = (packaged / file).read_text()
    return text[text.index(beginning) :].split("\n\n")[0]


print(entry("autograd/derivatives.yaml", "- name: relu("))

# sphinx_gallery_start_ignore
_formula = entry("autograd/derivatives.yaml", "- name: relu(")
assert "self: threshold_backward(grad, result, 0)" in _formula
_y = torch.relu(x)
assert torch.equal(_y.grad_fn._saved_result, _y)
_grad = torch.tensor([5.0, 7.0])
assert torch.equal(
    torch.autograd.grad(_y, x, _grad)[0],
    torch.ops.aten.threshold_backward(_grad, _y.detach(), 0),
)
# sphinx_gallery_end_ignore

# %%
# Read it like this: the gradient of ``self``, the input, is ``threshold_backward(grad, result, 0)``. ``grad`` is the gradient
# that arrives at the node, and ``result`` is what forward returned. That is why the node saved it: ``_saved_result``. The
# last line is the rule for forward mode.

print(entry("ATen/native/native_functions.yaml", "- func: relu("))

# sphinx_gallery_start_ignore
_devices = "CPU, CUDA" if TORCH < (2, 14) else "CPU, CUDA, XPU"
_devices = "CPU, CUDA, MPS, XPU" if TORCH >= (2, 15) else _devices
_relu = entry("ATen/native/native_functions.yaml", "- func: relu(")
assert f"    {_devices}: relu\n" in _relu
_linear = entry("ATen/native/native_functions.yaml", "- func: linear(")
assert "CompositeImplicitAutograd: linear" in _linear
# sphinx_gallery_end_ignore

# %%
# This is the entry of ``relu`` in the list of operators. Under ``dispatch`` it has kinds of tensors, and the name of the C++
# function for each: ``relu`` for CPU and CUDA. Search the repository's folder ``aten/src/ATen/native`` for ``Tensor relu(``:
# the hit in ``Activation.cpp`` is the code.
#
# The entry of ``linear`` says ``CompositeImplicitAutograd``: its C++ function calls other operators, and autograd records
# those. That is why the figure has no ``LinearBackward0``.

# %%
# Why: the dispatcher
# -------------------
# One operator can have several C++ functions, for example one for autograd and one for the CPU. The *dispatcher* chooses which
# of them run, and in which order. For ``x``, the function of autograd comes first. It calls the function for the CPU, the
# *kernel*, and connects the result to a node. The mode works between these two, so inside the mode the result of ``relu`` still
# lacks its ``grad_fn``:


class Between(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.relu.default:
            print("inside the mode:", result.grad_fn)
        return result


with Between():
    y = torch.relu(x)
print("after the call: ", y.grad_fn.name())

# sphinx_gallery_start_ignore
_inside = []


class _Checked(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        _inside.append((func, result.grad_fn))
        return result


with _Checked():
    torch.relu(x)
assert _inside[0] == (torch.ops.aten.relu.default, None)
assert y.grad_fn.name() == "ReluBackward0"
# sphinx_gallery_end_ignore

# %%
# The kernel calls ``clamp_min`` inside, below the mode. The profiler sees it:

with profile(activities=[ProfilerActivity.CPU]) as profiled:
    torch.relu(x).sum().backward()

for event in profiled.events():
    if event.name in ("aten::relu", "ReluBackward0"):
        print(event.name, "calls", [child.name for child in event.cpu_children])

# sphinx_gallery_start_ignore
_inner = {e.name: [c.name for c in e.cpu_children] for e in profiled.events()}
assert _inner["aten::relu"] == ["aten::clamp_min"]
assert _inner["ReluBackward0"] == ["aten::threshold_backward"]
with Operators() as _relu_only:
    torch.relu(x)
assert "clamp_min" not in _relu_only.names
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Expecting one operator and one node for each module.** The number depends on the module, on its options and on the
# input:


def make_input(*shape):
    return torch.randn(*shape, requires_grad=True)


classes = torch.zeros(8, dtype=torch.long)
cases = {
    "nn.Linear(4, 3), input 8×4": (nn.Linear(4, 3), make_input(8, 4)),
    "nn.Linear(4, 3), input 2×8×4": (nn.Linear(4, 3), make_input(2, 8, 4)),
    "nn.Linear(4, 3, bias=False)": (nn.Linear(4, 3, bias=False), make_input(8, 4)),
    "nn.ReLU()": (nn.ReLU(), make_input(8, 4)),
    "nn.ReLU6()": (nn.ReLU6(), make_input(8, 4)),
    "nn.Dropout()": (nn.Dropout(), make_input(8, 4)),
    "nn.Dropout().eval()": (nn.Dropout().eval(), make_input(8, 4)),
    "nn.Conv2d(3, 4, 3)": (nn.Conv2d(3, 4, 3), make_input(2, 3, 8, 8)),
    "nn.Flatten()": (nn.Flatten(), make_input(2, 3, 8, 8)),
    "nn.L1Loss()": (nn.L1Loss(), make_input(8, 3), target),
    "nn.CrossEntropyLoss()": (nn.CrossEntropyLoss(), make_input(8, 3), classes),
}

# %%
# .. how-measured:: This code notes what the mode sees in a module's forward, and the nodes behind its result.

import pandas as pd

pd.set_option("display.max_colwidth", None)


def left_by(module, *inputs):
    with Operators() as forward:
        out = module(*inputs)
    start = inputs[0].grad_fn
    found = [out.grad_fn] if out.grad_fn is not start else []
    for node in found:
        found += [n for n, _ in node.next_functions if n not in (None, start, *found)]
    names = [node.name() for node in found if not hasattr(node, "variable")]
    names = [name.removesuffix("Backward0") for name in names]
    called = [name for name in forward.names if name != "detach"]
    return ", ".join(called) or "none", ", ".join(reversed(names)) or "none"


def tabulate_operators(cases):
    left = {name: left_by(module, *args) for name, (module, *args) in cases.items()}
    return pd.DataFrame(left, ["operators", "nodes"]).T.rename_axis(columns="module")


# %%
# The operators that the mode saw, without ``detach``, and the nodes, without ``Backward0`` and without those of leaves:

# sphinx_gallery_start_ignore
table = {name: left_by(module, *args) for name, (module, *args) in cases.items()}
_expected = {
    "nn.Linear(4, 3), input 8×4": ("t, addmm", "T, Addmm"),
    "nn.ReLU6()": ("hardtanh", "Hardtanh"),
    "nn.Dropout().eval()": ("none", "none"),
    "nn.Flatten()": ("view", "View"),
    "nn.L1Loss()": ("sub, abs, mean", "Sub, Abs, Mean"),
}
assert all(table[name] == left for name, left in _expected.items())
assert len({table[name] for name in table if "Linear" in name}) == 3
assert table["nn.Dropout()"][1] == "Mul" and "," in table["nn.Dropout()"][0]
assert table["nn.CrossEntropyLoss()"][0] == "_log_softmax, nll_loss_forward"
assert nn.Dropout().eval()(x) is x
# sphinx_gallery_end_ignore
tabulate_operators(cases)

# %%
# For example, ``nn.ReLU6()`` runs ``hardtanh``, and ``nn.Dropout().eval()`` returns its input. The last step of a linear layer
# with a batch of sequences is ``view`` in PyTorch 2.13, and ``_unsafe_view`` in 2.15.
#
# **Replacing torch.relu to catch every ReLU.** ``x.relu()`` calls the operator, as ``torch.ops.aten.relu`` does, instead of
# ``torch.relu``. A ``TorchDispatchMode`` catches all three calls:


def three_times():
    return nn.ReLU()(x), x.relu(), torch.ops.aten.relu(x)


with patch("torch.relu", wraps=torch.relu) as replaced:
    three_times()
with Operators() as calls:
    three_times()
print("torch.relu replaced:", replaced.call_count)
print("TorchDispatchMode:  ", calls.names.count("relu"))

# sphinx_gallery_start_ignore
assert (replaced.call_count, calls.names.count("relu")) == (1, 3)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``relu`` calls ``clamp_min`` with 0, so ``torch.relu(x)`` and ``torch.clamp_min(x, 0)`` have the same values here. Do they
# have the same gradient at ``x = 0``? Which nodes do they leave?
#
# .. solution::
#
# Not in PyTorch 2.13. Autograd records ``relu``, and not what its kernel calls inside. ``relu`` leaves ``ReluBackward0``, whose
# gradient at 0 is 0. ``clamp_min`` has its own entry in ``derivatives.yaml``, and its gradient at 0 is 1.
#
# .. torch-changed:: 2.14
#    :probe: kinks: x.clamp_min(0) at x = [0]
#
#    On 2.14 both gradients are 0, and there are still two nodes with two entries. `pytorch#191142
#    <https://github.com/pytorch/pytorch/pull/191142>`__ changed the entry of ``clamp_min`` on purpose.

zero = torch.zeros(1, requires_grad=True)
relu, clamp = torch.relu(zero), torch.clamp_min(zero, 0)
for result in (relu, clamp):
    (slope,) = torch.autograd.grad(result, zero)
    print(f"{result.grad_fn.name():<17} gradient at 0: {slope.item()}")

# sphinx_gallery_start_ignore
relu, clamp = torch.relu(zero), torch.clamp_min(zero, 0)
assert (relu.grad_fn.name(), clamp.grad_fn.name()) == (
    "ReluBackward0",
    "ClampMinBackward0",
)
assert torch.autograd.grad(relu, zero)[0] == 0
assert torch.autograd.grad(clamp, zero)[0] == (0 if TORCH >= (2, 14) else 1)
_clamp_min = entry("autograd/derivatives.yaml", "- name: clamp_min(")
assert ("self > min" if TORCH >= (2, 14) else "self >= min") in _clamp_min
_many = torch.randn(100)
assert torch.equal(torch.relu(_many), torch.clamp_min(_many, 0))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_custom_operator.py`: add your own operator.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: which gradient PyTorch returns at a kink.
# - In PyTorch's notes: `Extending PyTorch
#   <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
