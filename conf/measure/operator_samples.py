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
from itertools import chain, combinations, count, islice
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
    kind: Mapping[str, str]  # what can tell this sample from others, see ``Kind``
    seed: int = 0

    @property
    def differentiable(self) -> list[torch.Tensor]:
        return [tensor for _name, tensor in self.name_tensors() if tensor.requires_grad]

    def name_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors with their arguments' names."""
        return ((n, leaf) for n, leaf in zip(self.names, self.leaves, strict=True) if isinstance(leaf, torch.Tensor))

    def __call__(self, replaced: Sequence[torch.Tensor] | None = None) -> list[torch.Tensor]:
        """The tensors that the operator returns, ``replaced`` standing for the differentiable inputs."""
        ours = iter(self.differentiable if replaced is None else replaced)
        leaves = (next(ours) if getattr(leaf, "requires_grad", False) else leaf for leaf in self.leaves)
        arguments, keywords = tree_unflatten(list(leaves), self.tree)
        # Operators with random numbers must draw the same ones each time; torch.manual_seed is slower than most of them.
        torch.default_generator.manual_seed(self.seed)
        result, _ = tree_flatten(self.function(*arguments, **keywords))
        return [one for one in result if isinstance(one, torch.Tensor)]

    def with_tensors(self, changed: Callable[[torch.Tensor], torch.Tensor], **kind: str) -> Call:
        """The same call with other floating and complex tensors."""
        leaves = (changed(x.detach()).requires_grad_(x.requires_grad) if is_inexact(x) else x for x in self.leaves)
        return replace(self, leaves=tuple(leaves), kind={**self.kind, **kind})


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
        call = Call(function, tuple(leaves), tree, names, _describe_kind(names, leaves))
        if call.differentiable and sum(tensor.numel() for _name, tensor in call.name_tensors()) <= LARGEST:
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
    differs = [len(call.kind) for call in rest[:1]] * len(rest)
    for seed in count():
        if not any(differs):
            return
        chosen = rest[differs.index(max(differs))]
        known = chosen.kind.items()
        differs = [min(old, len(known ^ call.kind.items())) for old, call in zip(differs, rest, strict=True)]
        yield replace(chosen, seed=seed)


def _has_a_derivative(call: Call) -> bool:
    return any(is_differentiable(output) and output.numel() for output in call())


def _add_samples(name: str, dtype: torch.dtype) -> list[SampleInput]:
    """Samples that matter and are not in the database, such as many rows, or a result that has the input's shape and type."""
    make = partial(torch.testing.make_tensor, device="cpu", dtype=dtype, requires_grad=True)
    labels = torch.tensor([0, 2])
    products = (((3,), (3,)), ((3,), (3, 4)), ((3, 4), (4,)), ((3, 4), (2, 4, 3)), ((2, 2, 3, 4), (2, 4, 3)))
    modes = ((30, "use_mm_for_euclid_dist_if_necessary"), (4, "use_mm_for_euclid_dist"))
    made: dict[str, Callable[[], list[SampleInput]]] = {
        "half": lambda: [_make_sample(make(2, 3, dtype=torch.float16))] if dtype is torch.bfloat16 else [],
        "chalf": lambda: [_make_sample(make(2, 3, dtype=torch.complex32))] if dtype is torch.complex64 else [],
        "cdouble": lambda: [_make_sample(make(2, 3, dtype=torch.complex128))] if dtype is torch.complex64 else [],
        # of rank 1, whose derivative is not 0
        "linalg.det": lambda: [_make_sample(torch.tensor([[1, 2], [2, 4]], dtype=dtype, requires_grad=True))],
        # one matrix for two factors, which has the shape of two vectors
        "cholesky_solve": lambda: [_make_sample(make(2, 2), make(2, 2, 2, low=1, high=2))],
        "pow": lambda: [_make_sample(2.5, make(3))],
        "matmul": lambda: [_make_sample(make(a), make(b)) for a, b in products],
        "meshgrid": lambda: [_make_sample([make(2), make(3)], indexing="ij")],
        "broadcast_tensors": lambda: [_make_sample(make(3), make(3))],
        "__getitem__": lambda: [_make_sample(make(3, 3), index) for index in (None, 0, slice(0, 2))],
        "nn.functional.adaptive_avg_pool2d": lambda: [_make_sample(make(2, 3, 4, 4), 1)],
        "nn.functional.cross_entropy": lambda: [_make_sample(make(2, 3), labels, label_smoothing=0.1)],
        "nn.functional.multilabel_soft_margin_loss": lambda: [
            _make_sample(make(2, 3), make(2, 3).detach(), reduction=reduction) for reduction in ("sum", "none")
        ],
        # with a bias and no weight, as in the next two
        "nn.functional.layer_norm": lambda: [_make_sample(make(2, 3), (3,), None, bias) for bias in (make(3), None)],
        "nn.functional.batch_norm": lambda: [
            _make_sample(make(4, 3), None, None, weight, make(3), True) for weight in (None, make(3))
        ],
        "nn.functional.instance_norm": lambda: [
            _make_sample(make(2, 3, 4), weight=weight, bias=make(3)) for weight in (None, make(3))
        ],
        "nn.functional.embedding": lambda: [_make_sample(make(3, 2), labels, padding_idx=0)],
        "cdist": lambda: [
            _make_sample(make(rows, 3), make(rows, 3), p=2.0, compute_mode=mode) for rows, mode in modes
        ],
        "sum_to_size": lambda: [_make_sample(make(4, 6), (4, 6)), _make_sample(make(4, 6), (1,))],
        "einsum": lambda: [_make_sample([make(2, 3)], "ij->ji")],
    }
    return made.get(name, list)()


def _make_sample(given: Any, /, *arguments: Any, **keywords: Any) -> SampleInput:
    return SampleInput(given, args=arguments, kwargs=keywords)


def _with_a_number(sample: SampleInput) -> SampleInput:
    arguments = (2.5 if isinstance(argument, torch.Tensor) else argument for argument in sample.args)
    return _make_sample(sample.input, *arguments, **sample.kwargs)


def with_one_that_learns(call: Call) -> Iterator[Call]:
    """The call with each of its differentiable arguments as the only one that requires a gradient; none if it has one."""
    learning = {name: None for name, tensor in call.name_tensors() if tensor.requires_grad}
    for one in learning if len(learning) > 1 else ():
        leaves = list(call.leaves)
        for place, name in enumerate(call.names):
            if name in learning and name != one and isinstance(leaves[place], torch.Tensor):
                leaves[place] = leaves[place].detach()
        kind = {**call.kind, **{f"{name}.requires_grad": str(name == one) for name in learning}}
        other = replace(call, leaves=tuple(leaves), kind=kind)
        if _has_a_derivative(other):
            yield other


def in_other_layouts(call: Call) -> Iterator[Call]:
    """The call with its tensors in each layout in which one of them can lie and the operator takes it."""
    for name, lay in LAYOUTS.items():
        if not any(_can_lie(tensor, name) for tensor in call.differentiable):
            continue
        try:
            other = call.with_tensors(lambda x, lay=lay, name=name: lay(x) if _can_lie(x, name) else x, layout=name)
            other()
        except RuntimeError:
            continue
        yield other


def _find_axes(tensor: torch.Tensor) -> tuple[int, int]:
    """Those that are exchanged: of four dimensions the inner ones, as between the heads and the steps of attention."""
    return (1, 2) if tensor.dim() == 4 else (0, -1)


def _can_lie(x: torch.Tensor, layout: str) -> bool:
    fits = {"conjugated": x.is_complex(), "negated": x.is_floating_point()}
    fits["transposed"] = x.dim() > 1 and all(x.shape[axis] > 1 for axis in _find_axes(x))
    return x.layout is torch.strided and x.numel() > 1 and fits.get(layout, True)


def _as_gradcheck(operator: Any, sample: Any, *arguments: Any, **keywords: Any) -> Any:
    return sample.output_process_fn_grad(operator.gradcheck_wrapper(operator.op, *arguments, **keywords))


def _describe_kind(names: Sequence[str], leaves: Sequence[Any]) -> dict[str, str]:
    """What can tell a sample from others: of which type each argument is, what requires a gradient, words, dimensions."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    learning = next((str(tensor.dtype) for tensor in tensors if tensor.requires_grad), "")
    kind = {"type": learning.removeprefix("torch."), "layout": "contiguous"}
    for name, leaf in zip(names, leaves, strict=True):
        if isinstance(leaf, torch.Tensor):
            kind[name] = "a tensor" if is_inexact(leaf) else "a tensor of integers"
            kind[f"{name}.requires_grad"] = str(leaf.requires_grad)
            if leaf.requires_grad and leaf.dim() != tensors[0].dim():
                kind[f"{name}.dimensions"] = str(leaf.dim())
        elif isinstance(leaf, (bool, str, type(None))):
            kind[name] = repr(leaf)
        elif isinstance(leaf, (int, float, complex)):
            kind[name] = "several numbers"
            if names.count(name) == 1:
                kind |= {name: "a number", f"{name}.value": repr(leaf)}
        else:
            kind[name] = type(leaf).__name__
    if tensors:
        kind["dimensions"] = str(tensors[0].dim())
        sizes = {size for tensor in tensors for size in tensor.shape}
        most = "above 25" if max(sizes, default=2) > 25 else "2 to 25"
        kind["sizes"] = next((str(size) for size in (0, 1) if size in sizes), most)
    return kind


def _name_leaves(operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Iterator[str]:
    """For each leaf the name of its argument."""
    names = _find_parameters(operator, len(arguments))
    names += [f"argument {number + 1}" for number in range(len(names), len(arguments))]
    for name, argument in [*zip(names, arguments, strict=False), *keywords.items()]:
        yield from [name] * len(tree_flatten(argument)[0])


def _find_parameters(operator: Any, number: int) -> list[str]:
    """The names of the first arguments, from the signature of a function in Python, else from the operator's schema."""
    space, _dot, short = operator.name.rpartition(".")
    functions = [operator.op]
    if space == "nn.functional":
        functions += [getattr(functional, name, None) for name in (f"{short}_with_indices", short)]
    known = [_name_positional(function, number) for function in functions if inspect.isfunction(function)]
    schemas = _read_schemas(operator.aten_name or "") or _read_schemas(short)
    known = [names for names in known if "args" not in names] + schemas
    names = next((names for names in known if len(names) >= number), max(schemas, key=len, default=()))
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


# -- For which samples something holds, in words: *raises if transposed* ----------------------------

#: What is known of a sample, by the name of the attribute: its ``type``, ``layout`` and ``dimensions``, and of each argument
#: whether it is a tensor, whether it requires a gradient, and its value if that is a word or a number.
Kind = Mapping[str, str]
#: Attributes of all samples, the most telling first. Those of arguments come after them.
FIRST = ("type", "layout", "result", "changed")
MOST_VALUES = 3


def tell_condition(seen: Sequence[tuple[Kind, bool]], *, but: str = "") -> str:
    """What the samples have in common for which something holds.

    An attribute tells if no sample of the others has one of its values, and so do two together: ``if``. It still tells
    something if it does not hold for other values: ``only if``. Of several the first counts, so the answer is a reading of
    these samples, not a law.

    :param but: an argument that is not asked about.
    :returns: nothing if it holds for all samples or for none.

    >>> seen = [({"layout": "contiguous"}, False), ({"layout": "transposed"}, True), ({"layout": "sliced"}, True)]
    >>> tell_condition(seen)
    'if sliced or transposed'
    >>> tell_condition([*seen, *3 * [({"layout": "contiguous"}, False)], ({"layout": "sliced"}, False)])
    'only if sliced or transposed'
    >>> tell_condition([({"type": "float64"}, True), ({"type": "float64"}, False), ({"type": "float64"}, False)])
    'in some samples'
    """
    holds, others = ([kind for kind, answer in seen if answer is wanted] for wanted in (True, False))
    if not holds or not others:
        return ""
    names = sorted({name for kind, _answer in seen for name in kind}, key=_rate_attribute)
    if but:
        names = [name for name in names if name not in (but, f"{but}.requires_grad", f"{but}.value")]
    told = [(name, *({_read_value(kind, name) for kind in kinds} for kinds in (holds, others))) for name in names]
    for name, ours, theirs in told:
        if len(ours) <= MOST_VALUES and not ours & theirs:
            return f"if {_phrase_values(name, ours)}"
    same = [(name, *ours) for name, ours, _theirs in told if len(ours) == 1]
    for (one, a), (two, b) in combinations(same, 2):
        if not any(_read_value(kind, one) == a and _read_value(kind, two) == b for kind in others):
            return f"if {_phrase_values(one, {a})} and {_phrase_values(two, {b})}"
    shares = {
        name: sum(_read_value(kind, name) in ours for kind in others)
        for name, ours, theirs in told
        if len(ours) <= MOST_VALUES and theirs - ours
    }
    if shares and shares[name := min(shares, key=shares.__getitem__)] < len(others) / 2:
        return f"only if {_phrase_values(name, {_read_value(kind, name) for kind in holds})}"
    return "in some samples" if len(holds) < len(others) else "in most samples"


def _rate_attribute(name: str) -> tuple[int, str]:
    """Where an attribute stands in the order in which they are asked: those of arguments come between others."""
    if name in FIRST:
        return FIRST.index(name), name
    return len(FIRST) + (name == "dimensions") + 2 * name.endswith(".value"), name


def _read_value(kind: Kind, name: str) -> str:
    """Nothing if the argument is not given; of one that is no number in this sample what it is.

    >>> [_read_value(kind, "n.value") for kind in ({"n": "a number", "n.value": "3"}, {"n": "a tensor"}, {})]
    ['3', 'a tensor', '']
    """
    return kind.get(name, "") or kind.get(name.removesuffix(".value"), "")


def _phrase_values(name: str, values: set[str]) -> str:
    """An attribute with some of its values.

    >>> _phrase_values("layout", {"sliced"}), _phrase_values("type", {"float32", "float64"})
    ('sliced', 'the type is float32 or float64')
    >>> _phrase_values("dimensions", {"4"}), _phrase_values("mode", {"", "'sum'"})
    ('it has 4 dimensions', "`mode` is not given or 'sum'")
    """
    said = " or ".join(value or "not given" for value in sorted(values))
    argument, _dot, what = name.partition(".")
    if what == "dimensions":
        return f"the dimensions of `{argument}` are {said.replace('not given', 'as many as the first')}"
    if what == "requires_grad":
        return f"`{argument}` requires {'no' if 'False' in values else 'a'} gradient"
    phrases = {
        "layout": said,
        "dimensions": f"it has {said} dimensions",
        "sizes": f"a size is {said}",
        "result": f"it is result {said}",
        "changed": f"{' or '.join(f'`{value}`' for value in sorted(values))} is changed",
        "type": f"the type is {said}",
    }
    return phrases.get(name, f"`{argument}` is {said}")
