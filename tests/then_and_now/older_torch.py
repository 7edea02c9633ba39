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
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import functorch
import torch
import torch.utils.checkpoint
from pytest import MonkeyPatch
from torch import nn
from torch.autograd import Function

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


def replaced(owner: Any, name: str, by: Callable[..., Any]) -> Change:
    """The change that puts ``by(original, *args, **kwargs)`` in the place of a function or method."""

    def made(patch: MonkeyPatch) -> None:
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda *args, **kwargs: by(original, *args, **kwargs))

    return made


def refused(*_: Any, **__: Any) -> None:
    raise RuntimeError("as it was: this does not work")


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


def gradients_returned(by: Callable[[Any, int], Any]) -> Change:
    """The change under which backward's return value counts as ``by(it, number of inputs)``."""

    def made(patch: MonkeyPatch) -> None:
        original = Function.apply.__func__

        def apply(function: type[Function], *inputs: Any) -> Any:
            def backward(ctx: Any, *gradients: Any) -> Any:
                return by(function.backward(ctx, *gradients), len(inputs))

            return original(type(function.__name__, (function,), {"backward": staticmethod(backward)}), *inputs)

        patch.setattr(Function, "apply", classmethod(apply))

    return made


def has_module(title: str, name: str) -> None:
    @change(title)
    def made(patch: MonkeyPatch) -> None:
        patch.setitem(sys.modules, name, ModuleType(name))


# -- Changed since -----------------------------------------------------------------------------------


change("torch.jit.script")(replaced(torch.export, "export", refused))


has_module("torch.utils.bottleneck", "torch.utils.bottleneck")


@change("CUBLAS_WORKSPACE_CONFIG")
def the_variable_is_documented(patch: MonkeyPatch) -> None:
    documented = torch.use_deterministic_algorithms.__doc__ or ""
    patch.setattr(torch.use_deterministic_algorithms, "__doc__", documented + "CUBLAS_WORKSPACE_CONFIG=:4096:8")


@change("allow_tf32")
def a_mixture_can_be_read(patch: MonkeyPatch) -> None:
    patch.setattr(torch._C, "_get_cublas_allow_tf32", lambda: True)


change("torch.load")(replaced(torch, "load", lambda load, file, weights_only=True: load(file, weights_only=True)))
change("torch.load")(replaced(torch.serialization, "safe_globals", lambda allow, classes: nullcontext()))


change("Mixed precision")(replaced(torch.cuda.amp, "autocast", lambda autocast: None))
change("Mixed precision")(replaced(torch.amp, "autocast", lambda autocast, device, dtype: nullcontext()))


change("The profiler")(
    replaced(
        torch.autograd.profiler,
        "profile",
        lambda profile, use_cuda=False, **how: profile(**how, **({"use_device": "cuda"} if use_cuda else {})),
    )
)


has_module("Pipelines over several devices", "torch.distributed.pipeline")


change("SGD's learning rate")(replaced(torch.optim.SGD, "__init__", lambda init, optimizer, parameters, *, lr: None))


change("set_default_tensor_type")(replaced(torch, "set_default_tensor_type", lambda set_type, tensor_type: None))
change("set_default_tensor_type")(replaced(torch, "set_default_dtype", lambda set_dtype, dtype: None))
change("set_default_tensor_type")(replaced(torch, "set_default_device", lambda set_device, device: None))


change("weight_norm and spectral_norm")(
    replaced(nn.utils, "weight_norm", lambda old, layer: nn.utils.parametrizations.weight_norm(layer))
)


change("Checkpointing")(
    replaced(
        torch.utils.checkpoint,
        "checkpoint",
        lambda checkpoint, function, x, use_reentrant=False: checkpoint(function, x, use_reentrant=use_reentrant),
    )
)


change("Static and dynamic frameworks")(replaced(torch.export, "export", refused))


change("functorch")(replaced(functorch, "grad", lambda grad, function: torch.func.grad(function)))
change("functorch")(replaced(torch.func, "grad", refused))


change("zero_grad")(replaced(nn.Module, "zero_grad", lambda zero_grad, module: zero_grad(module, set_to_none=False)))
change("zero_grad")(replaced(nn.Module, "zero_grad", lambda zero_grad, module, **how: zero_grad(module)))


change("storage")(replaced(Tensor, "storage", lambda storage, tensor: tensor.untyped_storage()))


change("squeeze")(
    replaced(
        Tensor,
        "squeeze",
        lambda squeeze, tensor, *dim: refused() if dim and isinstance(dim[0], tuple) else squeeze(tensor, *dim),
    )
)


@change("Jacobians")
def jacrev_loops(patch: MonkeyPatch) -> None:
    jacobian = torch.autograd.functional.jacobian
    patch.setattr(torch.func, "jacrev", lambda function: lambda x: jacobian(function, x))


change("Names of nodes")(other_nodes(name=lambda name: name.rstrip("0")))
change("Names of nodes")(other_nodes(name=lambda name: name.replace("Convolution", "MkldnnConvolution")))
change("Names of nodes")(other_nodes(name=lambda name: re.sub("^(Mm|Mv|Dot|UnsafeView)", "MatMul", name)))


@change("register_backward_hook")
def a_full_hook_is_an_old_one(patch: MonkeyPatch) -> None:
    original = nn.Module.register_backward_hook
    patch.setattr(nn.Module, "register_full_backward_hook", lambda module, hook: original(module, hook))


@change("DataParallel")
def nothing_else_is_recommended(patch: MonkeyPatch) -> None:
    patch.setattr(nn.DataParallel, "__doc__", "Implements data parallelism at the module level.")


@change("Calling a Function")
def a_function_can_be_called(patch: MonkeyPatch) -> None:
    patch.setattr(Function, "__call__", lambda function, *inputs: type(function).apply(*inputs))


change("Writing into an expanded tensor")(replaced(Tensor, "add_", lambda add, tensor, number: tensor))
change("Writing into an expanded tensor")(replaced(Tensor, "__setitem__", refused))
change("Writing into an expanded tensor")(replaced(Tensor, "fill_", refused))
change("Writing into an expanded tensor")(replaced(Tensor, "zero_", refused))
change("Writing into an expanded tensor")(replaced(Tensor, "cos_", lambda cos, tensor: tensor))


change("lr_scheduler.step")(
    replaced(torch.optim.lr_scheduler.LRScheduler, "step", lambda step, scheduler: step(scheduler, 0))
)


change("view")(
    replaced(Tensor, "view", lambda view, tensor, *size: view(tensor, *size) if tensor.is_contiguous() else refused())
)


change("size_average and reduce")(
    replaced(nn.MSELoss, "__init__", lambda init, loss, size_average=None, reduction="": init(loss, size_average))
)


@change("Variable")
def a_variable_is_no_tensor(patch: MonkeyPatch) -> None:
    class Variable:
        def __init__(self, data: Tensor) -> None:
            self.data = data

    patch.setattr(torch.autograd, "Variable", Variable)


@change("volatile")
def volatile_is_silent(patch: MonkeyPatch) -> None:
    patch.setattr(torch.autograd, "Variable", lambda data, volatile: data)


change("tensor.data")(replaced(Tensor, "detach", lambda detach, tensor: tensor.data))


change("loss.data[0]")(replaced(Tensor, "item", refused))


change("clip_grad_norm")(replaced(nn.utils, "clip_grad_norm_", refused))


# -- Never so ---------------------------------------------------------------------------------------


@change("Leaf")
def only_what_requires_a_gradient_is_a_leaf(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "is_leaf", property(lambda tensor: tensor.requires_grad and tensor.grad_fn is None))


change("Leaves that require no gradient")(
    replaced(Tensor, "__mul__", lambda mul, one, other: mul(one, other) if other.requires_grad else one.clone())
)


@change("The gradient of a non-leaf")
def every_gradient_is_stored(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "grad", property(lambda tensor: torch.ones_like(tensor.detach())))


change("backward on a leaf")(
    replaced(Tensor, "backward", lambda backward, tensor: refused() if tensor.is_leaf else backward(tensor))
)


change("Update a weight by hand")(replaced(Tensor, "__isub__", refused))


change("A gradient over several steps")(
    replaced(Tensor, "__mul__", lambda mul, one, other: mul(one, other.detach()))  # one path is left
)


change("After backward")(replaced(Tensor, "backward", lambda backward, tensor: backward(tensor, retain_graph=True)))


@change("Without backward")
def what_is_saved_is_never_freed(patch: MonkeyPatch) -> None:
    original, immortal = Tensor.__pow__, []

    def power(tensor: Tensor, exponent: int) -> Tensor:
        immortal.append(original(tensor, exponent))
        return immortal[-1]

    patch.setattr(Tensor, "__pow__", power)


change("What the graph saves")(replaced(Tensor, "__add__", lambda add, one, other: add(one.exp().log(), other)))


change("retain_graph")(replaced(Tensor, "backward", lambda backward, tensor, retain_graph=False: backward(tensor)))


change("Calling grad_fn by hand")(other_nodes(edges=lambda edges: [edge for edge in edges if edge[0]]))


@change("Drawing the graph")
def a_file_holds_the_graph(patch: MonkeyPatch) -> None:
    save, load, saved = torch.save, torch.load, []

    def save_too(tensor: Tensor, file: Any) -> None:
        saved.append(tensor.grad_fn)
        save(tensor.detach(), file)

    patch.setattr(torch, "save", save_too)
    patch.setattr(torch, "load", lambda file: load(file).requires_grad_().exp() if saved[-1] else load(file))


change("expand")(
    replaced(Tensor, "expand", lambda expand, tensor, *size: refused() if -1 in size else expand(tensor, *size))
)


change("contiguous")(replaced(Tensor, "contiguous", lambda contiguous, tensor: contiguous(tensor).clone()))
change("contiguous")(replaced(Tensor, "contiguous", lambda contiguous, tensor: tensor))


change("clone")(replaced(Tensor, "clone", lambda clone, tensor: clone(tensor.detach()).requires_grad_().exp().log()))
change("clone")(replaced(Tensor, "clone", lambda clone, tensor: clone(tensor, memory_format=torch.contiguous_format)))


change("detach to save memory")(replaced(Tensor, "detach", lambda detach, tensor: detach(tensor).clone()))


@change("detach to save memory")
def no_grad_records(patch: MonkeyPatch) -> None:
    patch.setattr(torch, "no_grad", nullcontext)


change('"detach creates a copy"')(replaced(Tensor, "detach", lambda detach, tensor: detach(tensor).clone()))


change("eval and memory")(
    replaced(nn.Dropout, "forward", lambda forward, layer, x: nn.functional.dropout(x, layer.p))
)


change("no_grad")(no_grad_records)


change("requires_grad_(False) on a result")(
    replaced(Tensor, "requires_grad_", lambda change_flag, tensor, flag=True: tensor.detach())
)


change("backward is for scalars")(
    replaced(
        Tensor,
        "backward",
        lambda backward, tensor, gradient=None: refused() if tensor.numel() > 1 else backward(tensor, gradient),
    )
)


change('"No errors, so the gradients are correct"')(
    replaced(Tensor, "numpy", lambda numpy, tensor: numpy(tensor).copy())
)


change("How many gradients backward returns")(
    gradients_returned(lambda returned, inputs: (*returned, *[None] * inputs)[:inputs])
)


change("save_for_backward")(
    replaced(
        torch.autograd,
        "grad",
        lambda grad, output, x, create_graph=False: grad(output, x, create_graph=True) if create_graph else refused(),
    )
)


change("gradcheck in float32")(
    replaced(
        torch.autograd,
        "gradcheck",
        lambda gradcheck, function, x, **how: gradcheck(function, x, **how) and x.dtype == torch.float64,
    )
)


@change("Anomaly mode")
def it_finds_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(torch.autograd, "set_detect_anomaly", lambda *how: nullcontext())


@change("TORCH_LOGS")
def set_logs_does_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(torch._logging, "set_logs", lambda **levels: None)


change("Resetting all layers")(
    replaced(nn.Module, "children", lambda children, module: [*module.modules()][1:])  # nested ones too
)


change("cudnn.deterministic")(replaced(torch, "use_deterministic_algorithms", lambda use, mode: None))


change("cudnn.deterministic")(replaced(torch._C, "_jit_get_all_schemas", lambda schemas: []))
