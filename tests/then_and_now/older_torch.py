"""PyTorch as the older notes have it: for each row of "Then and now", one change or several that make the old sentence true,
or part of the new one false.

A change replaces attributes of torch with ``pytest.MonkeyPatch``, so it ends with its test. Under each of them the check of
its row must fail; one that passes checks less than the row says.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from types import ModuleType
from typing import Any

import functorch
import torch
import torch.utils.checkpoint
from pytest import MonkeyPatch
from torch import nn
from torch.autograd import Function
from torch.autograd.functional import jacobian
from torch.nn.utils import parametrizations
from torch.torch_version import TorchVersion

Tensor = torch.Tensor
Change = Callable[[MonkeyPatch], None]

#: The changes, by the title of the row.
CHANGES: dict[str, list[Change]] = defaultdict(list)


def change(title: str) -> Callable[[Change], Change]:
    """Add a change to the row of this title."""

    def add(made: Change) -> Change:
        CHANGES[title].append(made)
        return made

    return add


def replace(title: str, owner: Any, name: str, by: Callable[..., Any]) -> None:
    """For the row of this title, put ``by(original, *args, **kwargs)`` in the place of a function or method."""

    @change(title)
    def made(patch: MonkeyPatch) -> None:
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda *args, **kwargs: by(original, *args, **kwargs))


def refused(*_: Any, **__: Any) -> None:
    raise RuntimeError("as it was: this does not work")


def forgiving(original: Callable[..., Any], *args: Any) -> None:
    with suppress(RuntimeError):
        original(*args)


def stay_as_before(title: str, release: str) -> None:
    """For the row of this title, do in a release what PyTorch did before it, or before it what it does in the release."""

    @change(title)
    def made(patch: MonkeyPatch) -> None:
        patch.setattr(torch, "__version__", TorchVersion("0" if torch.__version__ >= release else "99"))


class OtherNode:
    """A node as it is, but for its name and its edges."""

    def __init__(self, node: Any, name: Callable[[str], str] = str, edges: Callable[[Any], Any] = tuple) -> None:
        self._node, self._name, self._edges = node, name, edges

    def __call__(self, gradient: Tensor) -> Any:
        return self._node(gradient)

    def name(self) -> str:
        return self._name(self._node.name())

    @property
    def next_functions(self) -> Any:
        return self._edges(self._node.next_functions)


def other_nodes(**differences: Any) -> Change:
    def made(patch: MonkeyPatch) -> None:
        original = Tensor.grad_fn
        patch.setattr(Tensor, "grad_fn", property(lambda tensor: OtherNode(original.__get__(tensor), **differences)))

    return made


def has_module(title: str, name: str) -> None:
    @change(title)
    def made(patch: MonkeyPatch) -> None:
        patch.setitem(sys.modules, name, ModuleType(name))


# -- Changed since -----------------------------------------------------------------------------------


stay_as_before("Shapes that cannot be multiplied", "2.15")


stay_as_before("clamp", "2.14")


stay_as_before("cdist", "2.14")


stay_as_before("Clipping sparse gradients", "2.14")


stay_as_before("cholesky and qr", "2.14")


replace("Named tensors", torch, "zeros", lambda zeros, *size, names=(): zeros(*size))


replace("Messages of backward", Tensor, "backward", refused)
replace("Messages of backward", torch.autograd, "grad", refused)


replace(
    "grid_sample",
    nn.functional,
    "grid_sample",
    lambda sample, image, grid, **how: sample(image, grid.detach(), **how),
)


replace("torch.jit.script", torch.export, "export", refused)


has_module("torch.utils.bottleneck", "torch.utils.bottleneck")


@change("CUBLAS_WORKSPACE_CONFIG")
def the_variable_is_documented(patch: MonkeyPatch) -> None:
    documented = torch.use_deterministic_algorithms.__doc__ or ""
    patch.setattr(torch.use_deterministic_algorithms, "__doc__", documented + "CUBLAS_WORKSPACE_CONFIG=:4096:8")


replace("allow_tf32", torch._C, "_get_cublas_allow_tf32", lambda get: True)  # a mixture can be read


replace("torch.load", torch, "load", lambda load, file, weights_only=True: load(file, weights_only=True))
replace("torch.load", torch.serialization, "safe_globals", lambda allow, classes: nullcontext())


replace("Mixed precision", torch.cuda.amp, "autocast", lambda autocast: None)
replace("Mixed precision", torch.amp, "autocast", lambda autocast, device, dtype: nullcontext())


replace(
    "The profiler",
    torch.autograd.profiler,
    "profile",
    lambda profile, use_cuda=False, **how: profile(**how, **({"use_device": "cuda"} if use_cuda else {})),
)


has_module("Pipelines over several devices", "torch.distributed.pipeline")


replace("SGD's learning rate", torch.optim.SGD, "__init__", lambda init, optimizer, parameters, *, lr: None)


replace("set_default_tensor_type", torch, "set_default_tensor_type", lambda set_type, tensor_type: None)
replace("set_default_tensor_type", torch, "set_default_dtype", lambda set_dtype, dtype: None)
replace("set_default_tensor_type", torch, "set_default_device", lambda set_device, device: None)


replace(
    "weight_norm and spectral_norm", nn.utils, "weight_norm", lambda _, layer: parametrizations.weight_norm(layer)
)


replace(
    "Checkpointing",
    torch.utils.checkpoint,
    "checkpoint",
    lambda checkpoint, function, x, use_reentrant=False: checkpoint(function, x, use_reentrant=use_reentrant),
)


replace("Static and dynamic frameworks", torch.export, "export", refused)


replace("functorch", functorch, "grad", lambda grad, function: torch.func.grad(function))
replace("functorch", torch.func, "grad", refused)


replace("zero_grad", nn.Module, "zero_grad", lambda zero_grad, module: zero_grad(module, set_to_none=False))
replace("zero_grad", nn.Module, "zero_grad", lambda zero_grad, module, **how: zero_grad(module))


replace("storage", Tensor, "storage", lambda storage, tensor: tensor.untyped_storage())


replace("squeeze", Tensor, "squeeze", lambda squeeze, x, *dim: squeeze(x, *[int(one) for one in dim]))


replace("Jacobians", torch.func, "jacrev", lambda jacrev, function: lambda x: jacobian(function, x))


change("Names of nodes")(other_nodes(name=lambda name: name.rstrip("0")))
change("Names of nodes")(other_nodes(name=lambda name: name.replace("Convolution", "MkldnnConvolution")))
change("Names of nodes")(other_nodes(name=lambda name: re.sub("^(Mm|Mv|Dot|UnsafeView)", "MatMul", name)))


replace(
    "register_backward_hook",
    nn.Module,
    "register_full_backward_hook",
    lambda _, m, hook: m.register_backward_hook(hook),
)


@change("DataParallel")
def nothing_else_is_recommended(patch: MonkeyPatch) -> None:
    patch.setattr(nn.DataParallel, "__doc__", "Implements data parallelism at the module level.")


replace("Calling a Function", Function, "__call__", lambda call, function, *inputs: type(function).apply(*inputs))


replace("Writing into an expanded tensor", Tensor, "add_", lambda add, tensor, number: tensor)
replace("Writing into an expanded tensor", Tensor, "__setitem__", refused)
replace("Writing into an expanded tensor", Tensor, "fill_", refused)
replace("Writing into an expanded tensor", Tensor, "zero_", refused)
replace("Writing into an expanded tensor", Tensor, "cos_", lambda cos, tensor: tensor)


replace("lr_scheduler.step", torch.optim.lr_scheduler.LRScheduler, "step", lambda step, scheduler: step(scheduler, 0))


replace("view", Tensor, "view", lambda view, x, *size: view(x, *size) if x.is_contiguous() else refused())


replace(
    "size_average and reduce",
    nn.MSELoss,
    "__init__",
    lambda init, loss, size_average=None, **new: init(loss, size_average),
)


@change("Variable")
def a_variable_is_no_tensor(patch: MonkeyPatch) -> None:
    class Variable:
        def __init__(self, data: Tensor) -> None:
            self.data = data

    patch.setattr(torch.autograd, "Variable", Variable)


replace("volatile", torch.autograd, "Variable", lambda variable, data, volatile: data)


replace("tensor.data", Tensor, "detach", lambda detach, tensor: tensor.data)


replace("loss.data[0]", Tensor, "item", refused)


replace("clip_grad_norm", nn.utils, "clip_grad_norm_", refused)


# -- Never so ---------------------------------------------------------------------------------------


@change("Leaf")
def only_what_requires_a_gradient_is_a_leaf(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "is_leaf", property(lambda tensor: tensor.requires_grad and tensor.grad_fn is None))


replace(
    "Leaves that require no gradient",
    Tensor,
    "__mul__",
    lambda mul, x, y: mul(x, y) if y.requires_grad else x.clone(),
)


@change("The gradient of a non-leaf")
def every_gradient_is_stored(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "grad", property(lambda tensor: torch.ones_like(tensor.detach())))


replace("backward on a leaf", Tensor, "backward", lambda backward, x: refused() if x.is_leaf else backward(x))


replace("Update a weight by hand", Tensor, "__isub__", refused)


replace("A gradient over several steps", Tensor, "__mul__", lambda mul, x, y: mul(x, y.detach()))  # one path is left


replace("After backward", Tensor, "backward", lambda backward, tensor: backward(tensor, retain_graph=True))


@change("Without backward")
def what_is_saved_is_never_freed(patch: MonkeyPatch) -> None:
    original, immortal = Tensor.__pow__, []

    def power(tensor: Tensor, exponent: int) -> Tensor:
        immortal.append(original(tensor, exponent))
        return immortal[-1]

    patch.setattr(Tensor, "__pow__", power)


replace("What the graph saves", Tensor, "__add__", lambda add, one, other: add(one.exp().log(), other))


replace("retain_graph", Tensor, "backward", lambda backward, tensor, retain_graph=False: backward(tensor))


change("Calling grad_fn by hand")(other_nodes(edges=lambda edges: [edge for edge in edges if edge[0]]))


@change("Drawing the graph")
def a_file_holds_the_graph(patch: MonkeyPatch) -> None:
    save, load, saved = torch.save, torch.load, []

    def save_too(tensor: Tensor, file: Any) -> None:
        saved.append(tensor.grad_fn)
        save(tensor.detach(), file)

    patch.setattr(torch, "save", save_too)
    patch.setattr(torch, "load", lambda file: load(file).requires_grad_().exp() if saved[-1] else load(file))


replace("expand", Tensor, "expand", lambda expand, tensor, *size: refused() if -1 in size else expand(tensor, *size))


replace("contiguous", Tensor, "contiguous", lambda contiguous, tensor: contiguous(tensor).clone())
replace("contiguous", Tensor, "contiguous", lambda contiguous, tensor: tensor)


replace("clone", Tensor, "clone", lambda clone, tensor: clone(tensor.detach()).requires_grad_().exp().log())
replace("clone", Tensor, "clone", lambda clone, tensor: clone(tensor, memory_format=torch.contiguous_format))


replace("detach to save memory", Tensor, "detach", lambda detach, tensor: detach(tensor).clone())


replace("detach to save memory", torch, "no_grad", lambda no_grad: nullcontext())


replace('"detach creates a copy"', Tensor, "detach", lambda detach, tensor: detach(tensor).clone())


replace("eval and memory", nn.Dropout, "forward", lambda forward, layer, x: nn.functional.dropout(x, layer.p))


replace("no_grad", torch, "no_grad", lambda no_grad: nullcontext())


replace("requires_grad_(False) on a result", Tensor, "requires_grad_", lambda change_flag, x, flag=True: x.detach())


replace(
    "backward is for scalars",
    Tensor,
    "backward",
    lambda backward, tensor, gradient=None: refused() if tensor.numel() > 1 else backward(tensor, gradient),
)


replace('"No errors, so the gradients are correct"', Tensor, "numpy", lambda numpy, tensor: numpy(tensor).copy())


replace("How many gradients backward returns", Tensor, "backward", forgiving)


replace(
    "save_for_backward",
    torch.autograd,
    "grad",
    lambda grad, output, x, create_graph=False: grad(output, x, create_graph=True) if create_graph else refused(),
)


replace(
    "gradcheck in float32",
    torch.autograd,
    "gradcheck",
    lambda gradcheck, function, x, **how: gradcheck(function, x, **how) and x.dtype == torch.float64,
)


replace(
    "Anomaly mode", torch.autograd, "set_detect_anomaly", lambda set_anomaly, *how: nullcontext()
)  # it finds nothing


replace("TORCH_LOGS", torch._logging, "set_logs", lambda set_logs, **levels: None)


replace(
    "Resetting all layers", nn.Module, "children", lambda children, module: [*module.modules()][1:]
)  # nested ones too


replace("cudnn.deterministic", torch, "use_deterministic_algorithms", lambda use, mode: None)


replace("cudnn.deterministic", torch._C, "_jit_get_all_schemas", lambda schemas: [])
