"""The samples on which an operator is measured: one of each kind, some of them in other layouts and types too.

They come from PyTorch's own test database, ``torch.testing._internal.common_methods_invocations.op_db``, whose entries hold a
function and a generator of inputs. The generator is asked for many, and those are kept that show something new.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, count, islice
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.nn import functional
from torch.testing._internal import common_utils
from torch.testing._internal.opinfo import core
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_flatten, tree_unflatten

#: Operators that take a number in place of their other tensors too, which the database does not try.
TAKE_A_NUMBER = {
    *("mul", "div", "true_divide", "remainder", "fmod", "pow", "float_power", "xlogy", "special.xlog1py", "rsub"),
    *("clamp", "clamp_min", "clamp_max", "__rsub__", "__rmul__", "__rdiv__", "__rmod__", "__rpow__"),
}

MOST = 12  # samples of an operator and dtype
LOOKED_AT = 400  # of those that the database has
CHOSEN_FROM = 60  # of those, evenly
LARGEST = 2**15  # elements in all inputs of a sample

#: How else a tensor of the same shape and values can lie in memory.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda x: x.transpose(*_find_axes(x)).contiguous().transpose(*_find_axes(x)),
    "sliced": lambda x: torch.stack([x, x], dim=-1)[..., 0],
    "conjugated": lambda x: x.conj().resolve_conj().conj(),
    "negated": lambda x: torch._neg_view(x.neg()),
}


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with one sample of inputs. Tensors that require a gradient are leaves."""

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    tree: Any
    names: tuple[str, ...]  # for each leaf the argument that it is, or is a part of
    kind: Mapping[str, str]  # what can tell this sample from others, see ``sample_kinds``
    seed: int = 0

    @property
    def differentiable(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def name_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors with their arguments' names."""
        return ((n, leaf) for n, leaf in zip(self.names, self.leaves, strict=True) if isinstance(leaf, torch.Tensor))

    def __call__(self, replaced: Sequence[torch.Tensor] | None = None) -> list[torch.Tensor]:
        """The tensors that the operator returns, ``replaced`` standing for the differentiable inputs."""
        ours = iter(replaced) if replaced is not None else None
        leaves = [
            next(ours) if ours and isinstance(leaf, torch.Tensor) and leaf.requires_grad else leaf
            for leaf in self.leaves
        ]
        arguments, keywords = tree_unflatten(leaves, self.tree)
        # Operators with random numbers must draw the same ones each time; torch.manual_seed is slower than most of them.
        torch.default_generator.manual_seed(self.seed)
        result, _ = tree_flatten(self.function(*arguments, **keywords))
        return [one for one in result if isinstance(one, torch.Tensor)]

    def with_tensors(self, changed: Callable[[torch.Tensor], torch.Tensor], **kind: str) -> Call:
        """The same call with other floating and complex tensors."""
        leaves = tuple(
            changed(leaf.detach()).requires_grad_(leaf.requires_grad) if is_inexact(leaf) else leaf
            for leaf in self.leaves
        )
        return replace(self, leaves=leaves, kind={**self.kind, **kind})


def is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def is_differentiable(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and is_inexact(tensor)


def make_calls(operator: Any, dtype: torch.dtype, *, checked: bool = False) -> Iterator[Call]:
    """The operator with small samples that have something to differentiate: those of the first ones that are of a new kind.

    :param checked: call the operator as PyTorch's own gradcheck does: some need symmetric inputs, say, which differences
        would break.
    """
    if not operator.supports_autograd or not operator.supports_dtype(dtype, "cpu"):
        return
    torch.default_generator.manual_seed(0)
    random.seed(0)  # some samples draw a margin or a triangle from Python's generator, some from NumPy's
    np.random.seed(0)
    samples = _read_database(operator, dtype)
    if operator.name in TAKE_A_NUMBER:
        first = next(samples)
        samples = chain([first, _with_a_number(first)], samples)
    samples = chain(_add_samples(operator.name, dtype), samples)
    candidates = []
    for sample in islice(samples, LOOKED_AT):
        function = partial(_as_gradcheck, operator, sample) if checked else operator.op
        leaves, tree = tree_flatten(((sample.input, *sample.args), sample.kwargs))
        names = tuple(_name_leaves(operator, (sample.input, *sample.args), sample.kwargs))
        kind = {"type": _name_type(leaves), "layout": "contiguous", **_describe_kind(names, leaves)}
        call = Call(function, tuple(leaves), tree, names, kind)
        if call.differentiable and sum(tensor.numel() for tensor in call.tensors) <= LARGEST:
            candidates.append(call)
    yield from islice(filter(_has_a_derivative, _choose_varied(candidates)), MOST)


def _read_database(operator: Any, dtype: torch.dtype) -> Iterator[SampleInput]:
    """The samples of the database. For each, PyTorch would look through the stack for a unittest, and read the sources of all
    frames for that, which takes more time than all probes.
    """
    none = {"extract_test_fn": lambda: None, "create": True}  # created, where a version of PyTorch has it elsewhere
    with mock.patch.multiple(common_utils, **none), mock.patch.multiple(core, **none):
        yield from operator.sample_inputs("cpu", dtype, requires_grad=True, set_seed=False)


def _choose_varied(candidates: Sequence[Call]) -> Iterator[Call]:
    """Each call differs from all before it in more attributes than those after it; equal ones are left out."""
    rest = list(candidates[:: 1 + len(candidates) // CHOSEN_FROM])
    differs = [1] * len(rest)
    for seed in count():
        farthest = max(differs, default=0)
        if not farthest:
            return
        number = differs.index(farthest)
        chosen = rest[number]
        known = chosen.kind.items()
        differs = [
            min(differs[n] if seed else len(known), len(known ^ call.kind.items())) for n, call in enumerate(rest)
        ]
        yield replace(chosen, seed=seed)


def _has_a_derivative(call: Call) -> bool:
    return any(is_differentiable(output) and output.numel() for output in call())


def _add_samples(name: str, dtype: torch.dtype) -> Iterator[SampleInput]:
    """Samples that matter and are not in the database, such as many rows, or a result that has the input's shape and type."""
    make = partial(torch.testing.make_tensor, device="cpu", dtype=dtype, requires_grad=True)
    labels = torch.tensor([0, 2])
    match name:
        case "half" if dtype is torch.bfloat16:
            yield SampleInput(make(2, 3, dtype=torch.float16))
        case "chalf" if dtype is torch.complex64:
            yield SampleInput(make(2, 3, dtype=torch.complex32))
        case "cdouble" if dtype is torch.complex64:
            yield SampleInput(make(2, 3, dtype=torch.complex128))
        case "linalg.det":  # of rank 1, whose derivative is not 0
            yield SampleInput(torch.tensor([[1, 2], [2, 4]], dtype=dtype, requires_grad=True))
        case "cholesky_solve":  # one matrix for two factors, which has the shape of two vectors
            yield SampleInput(make(2, 2), args=(make(2, 2, 2, low=1, high=2),))
        case "pow":
            yield SampleInput(2.5, args=(make(3),))
        case "matmul":
            for a, b in (
                ((3,), (3,)),
                ((3,), (3, 4)),
                ((3, 4), (4,)),
                ((3, 4), (2, 4, 3)),
                ((2, 2, 3, 4), (2, 4, 3)),
            ):
                yield SampleInput(make(a), args=(make(b),))
        case "meshgrid":
            yield SampleInput([make(2), make(3)], kwargs={"indexing": "ij"})
        case "broadcast_tensors":
            yield SampleInput(make(3), args=(make(3),))
        case "__getitem__":
            for index in (None, 0, slice(0, 2)):
                yield SampleInput(make(3, 3), args=(index,))
        case "nn.functional.adaptive_avg_pool2d":
            yield SampleInput(make(2, 3, 4, 4), args=(1,))
        case "nn.functional.cross_entropy":
            yield SampleInput(make(2, 3), args=(labels,), kwargs={"label_smoothing": 0.1})
        case "nn.functional.multilabel_soft_margin_loss":
            for reduction in ("sum", "none"):
                yield SampleInput(make(2, 3), args=(make(2, 3).detach(),), kwargs={"reduction": reduction})
        case "nn.functional.layer_norm":  # with a bias and no weight, as in the next two
            for bias in (make(3), None):
                yield SampleInput(make(2, 3), args=((3,), None, bias))
        case "nn.functional.batch_norm":
            for weight in (None, make(3)):
                yield SampleInput(make(4, 3), args=(None, None, weight, make(3), True))
        case "nn.functional.instance_norm":
            for weight in (None, make(3)):
                yield SampleInput(make(2, 3, 4), kwargs={"weight": weight, "bias": make(3)})
        case "nn.functional.embedding":
            yield SampleInput(make(3, 2), args=(labels,), kwargs={"padding_idx": 0})
        case "cdist":
            for rows, mode in ((30, "use_mm_for_euclid_dist_if_necessary"), (4, "use_mm_for_euclid_dist")):
                yield SampleInput(make(rows, 3), args=(make(rows, 3),), kwargs={"p": 2.0, "compute_mode": mode})
        case "sum_to_size":
            yield SampleInput(make(4, 6), args=((4, 6),))
            yield SampleInput(make(4, 6), args=((1,),))
        case "einsum":
            yield SampleInput([make(2, 3)], args=("ij->ji",))


def _with_a_number(sample: SampleInput) -> SampleInput:
    arguments = tuple(2.5 if isinstance(argument, torch.Tensor) else argument for argument in sample.args)
    return SampleInput(sample.input, args=arguments, kwargs=sample.kwargs)


def with_one_that_learns(call: Call) -> Iterator[Call]:
    """The call with each of its differentiable arguments as the only one that requires a gradient; none if it has one."""
    learning = {name: None for name, tensor in call.name_tensors() if tensor.requires_grad}
    for one in learning if len(learning) > 1 else ():
        leaves = tuple(
            leaf.detach() if name in learning and name != one and isinstance(leaf, torch.Tensor) else leaf
            for name, leaf in zip(call.names, call.leaves, strict=True)
        )
        kind = {**call.kind, **{f"{name}.requires_grad": str(name == one) for name in learning}}
        other = replace(call, leaves=leaves, kind=kind)
        if _has_a_derivative(other):
            yield other


def in_other_layouts(call: Call) -> Iterator[Call]:
    """The call with its tensors in each layout in which one of them can lie and the operator takes it."""
    for layout, lay in LAYOUTS.items():
        if not any(_can_lie(tensor, layout) for tensor in call.differentiable):
            continue
        other = call.with_tensors(
            lambda x, lay=lay, layout=layout: lay(x) if _can_lie(x, layout) else x, layout=layout
        )
        try:
            other()
        except RuntimeError:
            continue
        yield other


def _find_axes(tensor: torch.Tensor) -> tuple[int, int]:
    """Those that are exchanged: of four dimensions the inner ones, as between the heads and the steps of attention."""
    return (1, 2) if tensor.dim() == 4 else (0, -1)


def _can_lie(tensor: torch.Tensor, layout: str) -> bool:
    if tensor.layout is not torch.strided or tensor.numel() < 2:
        return False
    return {
        "transposed": tensor.dim() > 1 and all(tensor.shape[axis] > 1 for axis in _find_axes(tensor)),
        "conjugated": tensor.is_complex(),
        "negated": tensor.is_floating_point(),
    }.get(layout, True)


def _as_gradcheck(operator: Any, sample: Any, *arguments: Any, **keywords: Any) -> Any:
    return sample.output_process_fn_grad(operator.gradcheck_wrapper(operator.op, *arguments, **keywords))


def _name_type(leaves: Sequence[Any]) -> str:
    learning = next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad), None)
    return "" if learning is None else str(learning.dtype).removeprefix("torch.")


def _describe_kind(names: Sequence[str], leaves: Sequence[Any]) -> dict[str, str]:
    """What can tell a sample from others: of which type each argument is, what requires a gradient, words, dimensions."""
    kind: dict[str, str] = {}
    first: torch.Tensor | None = None
    for name, leaf in zip(names, leaves, strict=True):
        if isinstance(leaf, torch.Tensor):
            kind[name] = "a tensor" if is_inexact(leaf) else "a tensor of integers"
            kind[f"{name}.requires_grad"] = str(leaf.requires_grad)
            first = leaf if first is None else first
            if leaf.requires_grad and leaf.dim() != first.dim():
                kind[f"{name}.dimensions"] = str(leaf.dim())
        elif isinstance(leaf, (bool, str, type(None))):
            kind[name] = repr(leaf)
        elif isinstance(leaf, (int, float, complex)):
            alone = names.count(name) == 1
            kind[name] = "a number" if alone else "several numbers"
            if alone:
                kind[f"{name}.value"] = repr(leaf)
        else:
            kind[name] = type(leaf).__name__
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if tensors:
        kind["dimensions"] = str(tensors[0].dim())
        sizes = {size for tensor in tensors for size in tensor.shape}
        kind["sizes"] = (
            "0" if 0 in sizes else "1" if 1 in sizes else "above 25" if max(sizes, default=2) > 25 else "2 to 25"
        )
    return kind


def _name_leaves(operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Iterator[str]:
    """For each leaf the name of its argument."""
    known = _find_parameters(operator, len(arguments))
    for number, argument in enumerate(arguments):
        name = known[number] if number < len(known) else f"argument {number + 1}"
        yield from [name] * len(tree_flatten(argument)[0])
    for name, argument in keywords.items():
        yield from [name] * len(tree_flatten(argument)[0])


def _find_parameters(operator: Any, number: int) -> list[str]:
    """The names of the first arguments, from the signature of a function in Python, else from the operator's schema."""
    space, _dot, short = operator.name.rpartition(".")
    functions = [operator.op]
    if space == "nn.functional":
        functions += [getattr(functional, name, None) for name in (f"{short}_with_indices", short)]
    for function in filter(inspect.isfunction, functions):
        names = _name_positional(function, number)
        if len(names) >= number and "args" not in names:
            return ["input", *names[1:]]
    schemas = _read_schemas(operator.aten_name or "") or _read_schemas(short)
    names = next((schema for schema in schemas if len(schema) >= number), max(schemas, key=len, default=()))
    return ["input", *names[1:]]


def _name_positional(function: Callable[..., Any], number: int) -> list[str]:
    """The names of the arguments by place; one for all that follow has its name for each of ``number``.

    >>> _name_positional(lambda one, *rest, last=0: None, 3)
    ['one', 'rest', 'rest']
    """
    names: list[str] = []
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            names.append(one.name)
        elif one.kind is one.VAR_POSITIONAL:
            names += [one.name] * (number - len(names))
    return names


@cache
def _read_schemas(name: str) -> list[list[str]]:
    """The names of the arguments of each overload."""
    found = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return [[argument.name for argument in schema.arguments if not argument.is_out] for schema in found]
