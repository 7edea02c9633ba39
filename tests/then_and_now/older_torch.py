"""PyTorch as the older notes have it: for each row of "Then and now", one change or several that make the old sentence true,
or part of the new one false.

A change replaces attributes of torch with ``pytest.MonkeyPatch``, so it ends with its test. Under each of them the check of
its row must fail; one that passes checks less than the row says.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import functorch
import torch
import torch.utils.checkpoint
from pytest import MonkeyPatch
from torch import nn
from torch.autograd import Function
from torch.utils._pytree import tree_map

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


def leaves_of(node: Any) -> Iterator[Tensor]:
    """The leaves that a backward from ``node`` would reach."""
    if hasattr(node, "variable"):
        yield node.variable
    for following, _ in node.next_functions if node else ():
        yield from leaves_of(following)


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


change("torch.jit.script")(
    replaced(torch.jit, "script", lambda script, module: warnings.warn("of else", stacklevel=1))
)
change("torch.jit.script")(replaced(torch.export, "export", refused))


has_module("torch.utils.bottleneck", "torch.utils.bottleneck")


@change("CUBLAS_WORKSPACE_CONFIG")
def the_variable_is_documented(patch: MonkeyPatch) -> None:
    documented = torch.use_deterministic_algorithms.__doc__ or ""
    patch.setattr(torch.use_deterministic_algorithms, "__doc__", documented + "CUBLAS_WORKSPACE_CONFIG=:4096:8")


@change("allow_tf32")
def the_names_know_nothing_of_each_other(patch: MonkeyPatch) -> None:
    patch.setattr(torch._C, "_get_fp32_precision_getter", lambda backend, operation: "none")
    patch.setattr(torch._C, "_set_fp32_precision_setter", lambda backend, operation, precision: None)


@change("allow_tf32")
def a_mixture_can_be_read(patch: MonkeyPatch) -> None:
    patch.setattr(torch._C, "_get_cublas_allow_tf32", lambda: True)


@change("allow_tf32")
def the_old_name_warns(patch: MonkeyPatch) -> None:
    original = torch._C._set_cublas_allow_tf32

    def set_allow_tf32(allowed: bool) -> None:
        warnings.warn("of the old name", stacklevel=1)
        original(allowed)

    patch.setattr(torch._C, "_set_cublas_allow_tf32", set_allow_tf32)


change("torch.load")(
    replaced(torch, "load", lambda load, file, weights_only=False: load(file, weights_only=weights_only))
)
change("torch.load")(replaced(torch, "load", lambda load, file, weights_only=True: load(file, weights_only=True)))
change("torch.load")(replaced(torch.serialization, "safe_globals", lambda allow, classes: nullcontext()))


change("Mixed precision")(replaced(torch.cuda.amp, "autocast", lambda autocast: None))
change("Mixed precision")(replaced(torch.amp, "autocast", lambda autocast, device, dtype: nullcontext()))
change("Mixed precision")(
    replaced(torch.cuda.amp, "GradScaler", lambda scaler, enabled: torch.amp.GradScaler("cuda", enabled=enabled))
)


change("The profiler")(
    replaced(
        torch.autograd.profiler,
        "profile",
        lambda profile, use_cuda=False, **how: profile(**how, **({"use_device": "cuda"} if use_cuda else {})),
    )
)


@change("The profiler")
def rows_have_no_engine(patch: MonkeyPatch) -> None:
    original = torch.profiler.profile.key_averages
    patch.setattr(
        torch.profiler.profile,
        "key_averages",
        lambda profile: [row for row in original(profile) if "evaluate_function" not in row.key],
    )


has_module("Pipelines over several devices", "torch.distributed.pipeline")


@change("Pipelines over several devices")
def there_is_no_successor(patch: MonkeyPatch) -> None:
    patch.setitem(sys.modules, "torch.distributed.pipelining", None)


change("SGD's learning rate")(replaced(torch.optim.SGD, "__init__", lambda init, optimizer, parameters, *, lr: None))


change("set_default_tensor_type")(replaced(torch, "set_default_tensor_type", lambda set_type, tensor_type: None))
change("set_default_tensor_type")(replaced(torch, "set_default_dtype", lambda set_dtype, dtype: None))
change("set_default_tensor_type")(replaced(torch, "set_default_device", lambda set_device, device: None))


change("weight_norm and spectral_norm")(
    replaced(nn.utils, "weight_norm", lambda old, layer: nn.utils.parametrizations.weight_norm(layer))
)
change("weight_norm and spectral_norm")(
    replaced(nn.utils, "spectral_norm", lambda old, layer: nn.utils.parametrizations.spectral_norm(layer))
)


@change("weight_norm and spectral_norm")
def spectral_norm_warns_too(patch: MonkeyPatch) -> None:
    original = nn.utils.spectral_norm

    def spectral_norm(layer: nn.Module) -> nn.Module:
        warnings.warn("of the old name", stacklevel=1)
        return original(layer)

    patch.setattr(nn.utils, "spectral_norm", spectral_norm)


change("Checkpointing")(
    replaced(
        torch.utils.checkpoint,
        "checkpoint",
        lambda checkpoint, function, x, use_reentrant=False: checkpoint(function, x, use_reentrant=use_reentrant),
    )
)


@change("Checkpointing")
def the_choice_warns_too(patch: MonkeyPatch) -> None:
    original = torch.utils.checkpoint.checkpoint

    def checkpoint(function: Any, x: Tensor, **choice: bool) -> Tensor:
        if choice:
            warnings.warn("of the choice", stacklevel=1)
        return original(function, x, **choice)

    patch.setattr(torch.utils.checkpoint, "checkpoint", checkpoint)


change("Static and dynamic frameworks")(replaced(torch.export, "export", refused))


change("functorch")(replaced(functorch, "grad", lambda grad, function: torch.func.grad(function)))
change("functorch")(replaced(torch.func, "grad", refused))


change("zero_grad")(replaced(nn.Module, "zero_grad", lambda zero_grad, module: zero_grad(module, set_to_none=False)))
change("zero_grad")(
    replaced(torch.optim.Optimizer, "zero_grad", lambda zero_grad, optimizer: zero_grad(optimizer, set_to_none=False))
)
change("zero_grad")(replaced(nn.Module, "zero_grad", lambda zero_grad, module, **how: zero_grad(module)))


change("storage")(replaced(Tensor, "storage", lambda storage, tensor: tensor.untyped_storage()))


@change("storage")
def it_counts_elements(patch: MonkeyPatch) -> None:
    patch.setattr(torch.UntypedStorage, "nbytes", lambda storage: len(storage) // 4)


change("squeeze")(
    replaced(
        Tensor,
        "squeeze",
        lambda squeeze, tensor, *dim: refused() if dim and isinstance(dim[0], tuple) else squeeze(tensor, *dim),
    )
)


change("Jacobians")(
    replaced(
        torch.autograd.functional,
        "jacobian",
        lambda jacobian, function, x, vectorize=True: jacobian(function, x, vectorize=vectorize),
    )
)
change("Jacobians")(
    replaced(
        torch.autograd.functional, "jacobian", lambda jacobian, function, x, vectorize=False: jacobian(function, x)
    )
)


@change("Jacobians")
def jacrev_loops(patch: MonkeyPatch) -> None:
    jacobian = torch.autograd.functional.jacobian
    patch.setattr(torch.func, "jacrev", lambda function: lambda x: jacobian(function, x))


change("Names of nodes")(other_nodes(name=lambda name: name.rstrip("0")))
change("Names of nodes")(other_nodes(name=lambda name: name.replace("Convolution", "MkldnnConvolution")))
change("Names of nodes")(other_nodes(name=lambda name: re.sub("^(Mm|Mv|Dot|UnsafeView)", "MatMul", name)))


change("register_backward_hook")(
    replaced(
        nn.Module, "register_backward_hook", lambda register, module, hook: module.register_full_backward_hook(hook)
    )
)


@change("register_backward_hook")
def a_full_hook_is_an_old_one(patch: MonkeyPatch) -> None:
    original = nn.Module.register_backward_hook
    patch.setattr(nn.Module, "register_full_backward_hook", lambda module, hook: original(module, hook))


@change("DataParallel")
def it_warns(patch: MonkeyPatch) -> None:
    original = nn.DataParallel.__init__

    def init(parallel: nn.Module, module: nn.Module) -> None:
        warnings.warn("of DataParallel", stacklevel=1)
        original(parallel, module)

    patch.setattr(nn.DataParallel, "__init__", init)


@change("DataParallel")
def nothing_else_is_recommended(patch: MonkeyPatch) -> None:
    patch.setattr(nn.DataParallel, "__doc__", "Implements data parallelism at the module level.")


@change("Calling a Function")
def a_function_can_be_called(patch: MonkeyPatch) -> None:
    patch.setattr(Function, "__call__", lambda function, *inputs: type(function).apply(*inputs))


@change("Calling a Function")
def it_wants_the_context_in_forward(patch: MonkeyPatch) -> None:
    patch.setattr(Function, "apply", classmethod(lambda function, *inputs: refused()))


change("Writing into an expanded tensor")(replaced(Tensor, "add_", lambda add, tensor, number: tensor))
change("Writing into an expanded tensor")(replaced(Tensor, "__setitem__", refused))
change("Writing into an expanded tensor")(replaced(Tensor, "fill_", refused))
change("Writing into an expanded tensor")(replaced(Tensor, "zero_", refused))
change("Writing into an expanded tensor")(replaced(Tensor, "cos_", lambda cos, tensor: tensor))


change("lr_scheduler.step")(
    replaced(torch.optim.lr_scheduler.LRScheduler, "step", lambda step, scheduler: step(scheduler, 0))
)


@change("lr_scheduler.step")
def the_order_is_not_looked_at(patch: MonkeyPatch) -> None:
    original = torch.optim.lr_scheduler.LRScheduler.step

    def step(scheduler: Any) -> None:
        with warnings.catch_warnings(action="ignore"):
            original(scheduler)

    patch.setattr(torch.optim.lr_scheduler.LRScheduler, "step", step)


change("view")(
    replaced(Tensor, "view", lambda view, tensor, *size: view(tensor, *size) if tensor.is_contiguous() else refused())
)


@change("size_average and reduce")
def the_old_arguments_are_silent(patch: MonkeyPatch) -> None:
    original = nn.modules.loss._Reduction.legacy_get_string
    patch.setattr(
        nn.modules.loss._Reduction, "legacy_get_string", lambda *arguments: original(*arguments, emit_warning=False)
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
def volatile_switches_recording_off(patch: MonkeyPatch) -> None:
    original, multiply, found = torch.autograd.Variable, Tensor.__mul__, []

    def variable(data: Tensor, volatile: bool) -> Tensor:
        found.append(original(data, volatile=volatile))
        return found[-1]

    def mul(one: Tensor, other: Tensor) -> Tensor:
        result = multiply(one, other)
        return result.detach() if any(other is data for data in found) else result

    patch.setattr(torch.autograd, "Variable", variable)
    patch.setattr(Tensor, "__mul__", mul)


@change("volatile")
def volatile_is_silent(patch: MonkeyPatch) -> None:
    patch.setattr(torch.autograd, "Variable", lambda data, volatile: data)


change("tensor.data")(replaced(Tensor, "detach", lambda detach, tensor: tensor.data))


@change("tensor.data")
def a_write_through_data_is_noticed(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "data", property(lambda tensor: tensor.detach()))


@change("loss.data[0]")
def a_loss_has_one_element(patch: MonkeyPatch) -> None:
    original = Tensor.sum
    patch.setattr(Tensor, "sum", lambda tensor: original(tensor)[None])


change("loss.data[0]")(replaced(Tensor, "item", refused))


change("clip_grad_norm")(
    replaced(nn.utils, "clip_grad_norm", lambda clip, parameters, norm: nn.utils.clip_grad_norm_(parameters, norm))
)
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


@change("The gradient of a non-leaf")
def it_cannot_be_retained(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "retain_grad", lambda tensor: None)


change("backward on a leaf")(
    replaced(Tensor, "backward", lambda backward, tensor: refused() if tensor.is_leaf else backward(tensor))
)


change("Update a weight by hand")(
    replaced(Tensor, "__sub__", lambda sub, one, other: sub(one, other).detach().requires_grad_())
)
change("Update a weight by hand")(replaced(Tensor, "__isub__", refused))


change("A gradient over several steps")(
    replaced(Tensor, "__mul__", lambda mul, one, other: mul(one, other.detach()))  # one path is left
)


@change("After backward")
def the_graph_is_destroyed(patch: MonkeyPatch) -> None:
    original, walked = Tensor.backward, []

    def backward(tensor: Tensor) -> None:
        if any(tensor is other for other in walked):
            refused()
        walked.append(tensor)
        original(tensor)

    patch.setattr(Tensor, "backward", backward)


change("After backward")(replaced(Tensor, "backward", lambda backward, tensor: backward(tensor, retain_graph=True)))


@change("Without backward")
def what_is_saved_is_never_freed(patch: MonkeyPatch) -> None:
    original, immortal = Tensor.__pow__, []

    def power(tensor: Tensor, exponent: int) -> Tensor:
        immortal.append(original(tensor, exponent))
        return immortal[-1]

    patch.setattr(Tensor, "__pow__", power)


change("What the graph saves")(replaced(Tensor, "__add__", lambda add, one, other: add(one.exp().log(), other)))


@change("retain_graph")
def only_retain_graph_accumulates(patch: MonkeyPatch) -> None:
    original = Tensor.backward

    def backward(tensor: Tensor, retain_graph: bool = False) -> None:
        for leaf in leaves_of(tensor.grad_fn) if not retain_graph else ():
            leaf.grad = None
        original(tensor, retain_graph=retain_graph)

    patch.setattr(Tensor, "backward", backward)


change("retain_graph")(replaced(Tensor, "backward", lambda backward, tensor, retain_graph=False: backward(tensor)))


change("Calling grad_fn by hand")(other_nodes(edges=lambda edges: [edge for edge in edges if edge[0]]))


@change("Calling grad_fn by hand")
def a_call_leaves_grad_alone(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "grad", property(lambda tensor: None))


@change("Calling grad_fn by hand")
def a_call_walks_on(patch: MonkeyPatch) -> None:
    original = Tensor.grad_fn

    def walks(tensor: Tensor) -> Any:
        node = original.__get__(tensor)

        class Walks(OtherNode):
            def __call__(self, gradient: Tensor) -> Any:
                tensor.backward(gradient)
                return self._node(gradient)

        return Walks(node)

    patch.setattr(Tensor, "grad_fn", property(walks))


@change("Drawing the graph")
def a_file_holds_the_graph(patch: MonkeyPatch) -> None:
    save, load, saved = torch.save, torch.load, []

    def save_too(tensor: Tensor, file: Any) -> None:
        saved.append(tensor.grad_fn)
        save(tensor.detach(), file)

    patch.setattr(torch, "save", save_too)
    patch.setattr(torch, "load", lambda file: load(file).requires_grad_().exp() if saved[-1] else load(file))


change("expand")(
    replaced(
        Tensor,
        "expand",
        lambda expand, tensor, *size: expand(tensor, *size) if len(size) == tensor.dim() else refused(),
    )
)
change("expand")(
    replaced(Tensor, "expand", lambda expand, tensor, *size: refused() if -1 in size else expand(tensor, *size))
)


change("contiguous")(replaced(Tensor, "contiguous", lambda contiguous, tensor: contiguous(tensor).clone()))
change("contiguous")(replaced(Tensor, "contiguous", lambda contiguous, tensor: tensor))


change("clone")(replaced(Tensor, "clone", lambda clone, tensor: clone(tensor.detach()).requires_grad_().exp().log()))
change("clone")(replaced(Tensor, "clone", lambda clone, tensor: clone(tensor, memory_format=torch.contiguous_format)))


@change("clone")
def clone_stops_the_gradient(patch: MonkeyPatch) -> None:
    original = Tensor.clone

    def clone(tensor: Tensor) -> Tensor:
        copy = original(tensor)
        if copy.requires_grad:
            copy.register_hook(torch.zeros_like)
        return copy

    patch.setattr(Tensor, "clone", clone)


change("detach to save memory")(replaced(Tensor, "detach", lambda detach, tensor: detach(tensor).clone()))


@change("detach to save memory")
def no_grad_records(patch: MonkeyPatch) -> None:
    patch.setattr(torch, "no_grad", nullcontext)


change('"detach creates a copy"')(replaced(Tensor, "detach", lambda detach, tensor: detach(tensor).clone()))


change("eval and memory")(
    replaced(nn.Dropout, "forward", lambda forward, layer, x: nn.functional.dropout(x, layer.p))
)


@change("eval and memory")
def eval_records_nothing(patch: MonkeyPatch) -> None:
    original = nn.Module.__call__
    patch.setattr(
        nn.Module,
        "__call__",
        lambda module, x: original(module, x) if module.training else original(module, x).detach(),
    )


change("no_grad")(
    replaced(
        torch,
        "ones",
        lambda ones, *size, requires_grad: ones(*size, requires_grad=requires_grad and torch.is_grad_enabled()),
    )
)
change("no_grad")(no_grad_records)


@change("no_grad")
def a_new_layer_requires_no_gradient(patch: MonkeyPatch) -> None:
    original = nn.Linear.__init__

    def init(layer: nn.Linear, *size: int) -> None:
        original(layer, *size)
        layer.requires_grad_(torch.is_grad_enabled())

    patch.setattr(nn.Linear, "__init__", init)


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


@change('"No errors, so the gradients are correct"')
def data_is_a_copy(patch: MonkeyPatch) -> None:
    patch.setattr(Tensor, "data", property(lambda tensor: tensor.detach().clone()))


change("How many gradients backward returns")(
    gradients_returned(lambda returned, inputs: (*returned, *[None] * inputs)[:inputs])
)
change("How many gradients backward returns")(
    gradients_returned(lambda returned, inputs: returned if len(returned) <= inputs else refused())
)


change("save_for_backward")(
    replaced(
        torch.autograd,
        "grad",
        lambda grad, output, x, create_graph=False: grad(output, x, create_graph=True) if create_graph else refused(),
    )
)


@change("save_for_backward")
def what_is_missing_is_made_up(patch: MonkeyPatch) -> None:
    original = torch.autograd.grad

    def grad(*arguments: Any, create_graph: bool = False) -> Any:
        found = original(*arguments, create_graph=create_graph)
        return found if create_graph else tree_map(lambda gradient: 2 * gradient, found)

    patch.setattr(torch.autograd, "grad", grad)


change("gradcheck in float32")(
    replaced(
        torch.autograd,
        "gradcheck",
        lambda gradcheck, function, x, **how: gradcheck(function, x, **how) and x.dtype == torch.float64,
    )
)


@change("gradcheck in float32")
def it_is_silent(patch: MonkeyPatch) -> None:
    original = torch.autograd.gradcheck

    def gradcheck(function: Any, x: Tensor, **how: Any) -> bool:
        warnings.warn("of something else", stacklevel=1)
        return original(function, x, **how)

    patch.setattr(torch.autograd, "gradcheck", gradcheck)


@change("Anomaly mode")
def it_finds_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(torch.autograd, "set_detect_anomaly", lambda *how: nullcontext())


@change("Anomaly mode")
def it_always_searches(patch: MonkeyPatch) -> None:
    original = torch.autograd.set_detect_anomaly
    patch.setattr(torch.autograd, "set_detect_anomaly", lambda mode, check_nan=True: original(mode))


@change("Anomaly mode")
def it_searches_forward_too(patch: MonkeyPatch) -> None:
    original = Tensor.log
    patch.setattr(Tensor, "log", lambda tensor: refused() if (tensor < 0).any() else original(tensor))


@change("Anomaly mode")
def it_always_knows_the_line(patch: MonkeyPatch) -> None:
    original = torch.autograd.set_detect_anomaly
    patch.setattr(torch.autograd, "set_detect_anomaly", lambda mode, check_nan=True: original(True, check_nan))


@change("TORCH_LOGS")
def set_logs_does_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(torch._logging, "set_logs", lambda **levels: None)


@change("TORCH_LOGS")
def it_is_read_at_any_time(patch: MonkeyPatch) -> None:
    original = logging.Logger.isEnabledFor
    patch.setattr(
        logging.Logger, "isEnabledFor", lambda logger, level: "TORCH_LOGS" in os.environ or original(logger, level)
    )


change("Resetting all layers")(
    replaced(nn.Module, "children", lambda children, module: [*module.modules()][1:])  # nested ones too
)


@change("Resetting all layers")
def apply_visits_children_only(patch: MonkeyPatch) -> None:
    patch.setattr(nn.Module, "apply", lambda module, function: [function(child) for child in module.children()])


change("cudnn.deterministic")(
    replaced(Tensor, "put_", lambda put, *how: refused() if torch.backends.cudnn.deterministic else put(*how))
)
change("cudnn.deterministic")(replaced(torch, "use_deterministic_algorithms", lambda use, mode: None))


@change("cudnn.deterministic")
def a_convolution_is_not_given_it(patch: MonkeyPatch) -> None:
    original = nn.Conv1d.forward

    def forward(layer: nn.Module, x: Tensor) -> Tensor:
        with torch.backends.cudnn.flags(deterministic=False):
            return original(layer, x)

    patch.setattr(nn.Conv1d, "forward", forward)


@change("cudnn.deterministic")
def it_switches_everything(patch: MonkeyPatch) -> None:
    patch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: torch.backends.cudnn.deterministic)


change("cudnn.deterministic")(replaced(torch._C, "_jit_get_all_schemas", lambda schemas: []))
