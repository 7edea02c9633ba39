"""Measure what one operator saves for backward, shares with its inputs, and does when tensors are changed in place.

Operators come as entries of ``torch.testing._internal.common_methods_invocations.op_db``: a function and a generator of
sample inputs. Everything is measured on the samples; what the database and the schemas claim is kept beside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_flatten, tree_unflatten

from .report import OUTCOMES

SAMPLES = 5  # of each operator and dtype; later ones are mostly more shapes of the same
LARGEST = 2**15  # elements in all inputs of a sample
DOCUMENTED = ("", "linalg", "fft", "nn.functional")  # namespaces with a page for each function
STEP = 1e-6  # of central differences in float64: the cube root of its precision, about


@dataclass(slots=True)
class Row:
    """What was found for one operator. Lists hold what its samples showed, each once, sorted."""

    name: str
    """As in PyTorch, such as ``linalg.qr``; with the variant in brackets where the database has several."""
    path: str
    """Where PyTorch documents the function, such as ``torch.exp``; empty where it does not."""
    dtypes: list[str] = field(default_factory=list)
    """Of float32, float64 (or complex128) and complex64, those in which backward ran."""
    nodes: list[str] = field(default_factory=list)
    saves: list[str] = field(default_factory=list)
    """Which tensors are kept for backward: ``input``, ``output``, ``new``."""
    kept: float = 0.0
    """Bytes kept for backward, divided by the bytes of all inputs and outputs."""
    shares: str = ""
    """Whether outputs share memory with inputs: ``always``, ``sometimes``, ``never``."""
    declared: str = ""
    """What the schemas say: ``may share``, ``new``, or nothing where there is no schema."""
    in_place: str = ""
    """The name of the variant that works in place, or nothing."""
    output_changed: str = ""
    """What backward does after the result was changed in place, one of ``report.OUTCOMES``."""
    input_changed: str = ""
    """The same after an input that requires a gradient was changed in place."""
    second: str = ""
    """Second derivative: ``yes``, ``zero``, ``no``, or ``wrong`` where differences disagree."""
    second_claimed: bool = False
    forward: str = ""
    """Forward mode: ``yes``, ``zero``, ``no``, or ``wrong`` where it disagrees with backward."""
    forward_claimed: bool = False
    error: float | None = None
    """The largest error of a directional derivative against central differences, relative to 1 or to its size; None if none
    was computed in float64."""
    samples: int = 0
    differs: list[str] = field(default_factory=list)
    """Dtypes in which nodes, saved tensors or sharing are not as in double precision."""


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with one sample of inputs. Tensors that require a gradient are leaves."""

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    tree: Any
    seed: int = 0

    @property
    def differentiable(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

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


def probe(operator: Any) -> Row | None:
    """Measure ``operator``, an entry of ``op_db``; None if it has no derivative or no sample.

    In float64, or in complex128 if it takes complex numbers only.
    """
    double = torch.float64 if operator.supports_dtype(torch.float64, "cpu") else torch.complex128
    calls, checked = (list(_calls(operator, double, checked=checked)) for checked in (False, True))
    if not calls:
        return None
    if not all(map(_can_go_back, calls)):
        calls = checked  # the phase of an eigenvector is free, so only some functions of it have a gradient
    row = Row(name=title(operator), path=_path(operator), samples=len(calls))
    _record(row, calls)
    row.declared = _declared(operator)
    row.in_place = getattr(operator.get_inplace(), "__name__", "") or ""
    row.output_changed = _worst(map(_after_output_changed, calls))
    row.input_changed = _worst(map(_after_input_changed, calls))
    row.second_claimed, row.forward_claimed = bool(operator.supports_gradgrad), bool(operator.supports_forward_ad)
    row.second = _sum_up(map(_second, checked))
    row.forward = _sum_up(map(_forward, checked))
    errors = [error for error in map(_error, checked) if error is not None]
    row.error = max(errors, key=lambda error: (math.isnan(error), error), default=None)
    row.dtypes = [str(double).removeprefix("torch.")]
    for dtype in (torch.float32, torch.complex64):
        _compare(row, operator, dtype)
    return row


# -- Samples --------------------------------------------------------------------------------------


def _calls(operator: Any, dtype: torch.dtype, *, checked: bool = False) -> Iterator[Call]:
    """The operator with its first samples that are small and have something to differentiate.

    :param checked: call the operator as PyTorch's own gradcheck does: some need symmetric inputs, say, which differences
        would break.
    """
    if not operator.supports_autograd or not operator.supports_dtype(dtype, "cpu"):
        return
    torch.default_generator.manual_seed(0)

    samples = operator.sample_inputs("cpu", dtype, requires_grad=True)
    found = 0
    for sample in itertools.islice(samples, 4 * SAMPLES):
        function = partial(_as_gradcheck, operator, sample) if checked else operator.op
        leaves, tree = tree_flatten(((sample.input, *sample.args), sample.kwargs))
        call = Call(function, tuple(leaves), tree, seed=found)
        if sum(tensor.numel() for tensor in call.tensors) > LARGEST or not call.differentiable:
            continue
        if not any(_is_differentiable(output) and output.numel() for output in call()):
            continue
        yield call
        found += 1
        if found == SAMPLES:
            return


def _as_gradcheck(operator: Any, sample: Any, *arguments: Any, **keywords: Any) -> Any:
    return sample.output_process_fn_grad(operator.gradcheck_wrapper(operator.op, *arguments, **keywords))


def _is_differentiable(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())


def title(operator: Any) -> str:
    """The operator's name, with its variant in brackets where the database has several."""
    variant = operator.variant_test_name
    return f"{operator.name} ({variant})" if variant else operator.name


def _path(operator: Any) -> str:
    """Where PyTorch documents the function; empty where it does not."""
    for place, path in ((torch, "torch"), (torch.Tensor, "torch.Tensor")):
        found: Any = place
        for part in operator.name.split("."):
            found = getattr(found, part, None)
        namespace = operator.name.rpartition(".")[0]
        if namespace in DOCUMENTED and not operator.name.startswith("_") and callable(found) and found.__doc__:
            return f"{path}.{operator.name}"
    return ""


def _can_go_back(call: Call) -> bool:
    try:
        _gradients(call(), call.differentiable)
    except RuntimeError:
        return False
    return True


# -- What is saved, and what is shared ------------------------------------------------------------


def _record(row: Row, calls: Sequence[Call]) -> None:
    nodes, saves, shares = set(), set(), set()
    kept = given = 0
    for call in calls:
        saved: dict[int, torch.Tensor] = {}
        with saved_tensors_hooks(
            lambda tensor, saved=saved: saved.setdefault(_place(tensor), tensor), lambda kept: kept
        ):
            outputs = call()
        nodes |= {output.grad_fn.name() for output in outputs if output.grad_fn is not None}
        inputs = {_place(tensor): _bytes(tensor) for tensor in call.tensors}
        results = {_place(tensor): _bytes(tensor) for tensor in outputs}
        for place in saved:
            saves.add("input" if place in inputs else "output" if place in results else "new")
        kept += sum(map(_bytes, saved.values()))
        given += sum((inputs | results).values())
        shares |= {_place(output) in inputs for output in outputs if output.numel()}
    row.nodes, row.saves = sorted(nodes), sorted(saves)
    row.kept = round(kept / given, 3) if given else 0.0
    row.shares = "sometimes" if len(shares) == 2 else "always" if True in shares else "never"


def _place(tensor: torch.Tensor) -> int:
    """What two tensors on the same memory have in common."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    return tensor.untyped_storage()._cdata


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes() if tensor.layout is torch.strided else 0


def _declared(operator: Any) -> str:
    """Whether a schema of the operator, not its variants with ``out`` or in place, marks a result as sharing memory."""
    if not operator.aten_name:
        return ""
    schemas = [
        schema
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{operator.aten_name}")
        if schema.returns and not any(argument.is_out for argument in schema.arguments)
    ]
    if not schemas:
        return ""
    marked = any(result.alias_info is not None for schema in schemas for result in schema.returns)
    return "may share" if marked else "new"


# -- Changes in place -----------------------------------------------------------------------------


def _vectors(tensors: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """A fixed random direction for each tensor."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator) for tensor in tensors]


def _gradients(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], **options: Any) -> list[torch.Tensor]:
    """The gradients of the outputs' products with fixed random vectors; zeros for inputs that do not take part."""
    outputs = [output for output in outputs if _is_differentiable(output)]
    found = torch.autograd.grad(outputs, inputs, _vectors(outputs, 1), allow_unused=True, **options)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def _after_output_changed(call: Call) -> str:
    """Add 1 to each output in turn, which changes no gradient, and see whether backward agrees."""
    inputs = call.differentiable
    expected = _gradients(call(), inputs)
    worst, index = "works", 0
    while True:
        outputs = [output for output in call([x.clone() for x in inputs]) if _is_differentiable(output)]
        if index == len(outputs):
            return worst
        worst = _worse(worst, _changed(outputs[index], outputs, inputs, expected))
        index += 1


def _after_input_changed(call: Call) -> str:
    """The same for each input that requires a gradient. A copy of the leaf is given, which may be changed."""
    inputs = call.differentiable
    expected = _gradients(call(), inputs)
    worst = "works"
    for index in range(len(inputs)):
        given = [x.clone() for x in inputs]
        worst = _worse(worst, _changed(given[index], call(given), inputs, expected))
    return worst


def _changed(
    tensor: torch.Tensor,
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
) -> str:
    try:
        tensor.add_(1)
    except RuntimeError:
        return "refused"
    try:
        found = _gradients(outputs, inputs)
    except RuntimeError:
        return "raises"
    same = all(torch.allclose(a, b, equal_nan=True) for a, b in zip(found, expected, strict=True))
    return "works" if same else "wrong"


def _worse(one: str, other: str) -> str:
    return max(one, other, key=OUTCOMES.index)


def _worst(outcomes: Iterator[str]) -> str:
    return max(outcomes, key=OUTCOMES.index, default="")


# -- Derivatives ----------------------------------------------------------------------------------


def _product(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> float:
    """The sum of all products, of complex numbers the real part of conj(a)·b: what a gradient is the gradient of."""
    return sum((a.conj() * b).real.sum().item() for a, b in zip(ones, others, strict=True))


def _moved(inputs: Sequence[torch.Tensor], directions: Sequence[torch.Tensor], step: float) -> list[torch.Tensor]:
    return [(x + step * u).detach().requires_grad_() for x, u in zip(inputs, directions, strict=True)]


def _relative(one: float, other: float) -> float:
    if math.isnan(one) or math.isnan(other):
        return math.nan
    return abs(one - other) / max(1.0, abs(one), abs(other))


def _in_double(tensors: Sequence[torch.Tensor]) -> bool:
    return all(tensor.dtype in (torch.float64, torch.complex128) for tensor in tensors if _is_differentiable(tensor))


def _error(call: Call) -> float | None:
    """How far backward is from central differences along one random direction, relative to 1 or to the derivative.

    None for a conversion to a lower precision: differences would measure its rounding.
    """
    inputs = call.differentiable
    if not _in_double(call()):
        return None
    directions = _vectors(inputs, 2)

    def value(step: float) -> float:
        outputs = [output for output in call(_moved(inputs, directions, step)) if _is_differentiable(output)]
        return _product(_vectors(outputs, 1), [output.detach() for output in outputs])

    slope = (value(STEP) - value(-STEP)) / (2 * STEP)
    return _relative(slope, _product(_gradients(call(), inputs), directions))


def _forward(call: Call) -> str:
    inputs = call.differentiable
    directions = _vectors(inputs, 2)
    backward = _product(_gradients(call(), inputs), directions)
    try:
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x.detach(), u) for x, u in zip(inputs, directions, strict=True)]
            outputs = call([dual.requires_grad_() for dual in duals])
            outputs = [output for output in outputs if _is_differentiable(output)]
            tangents = [forward_ad.unpack_dual(output).tangent for output in outputs]
    except (NotImplementedError, RuntimeError):
        return "no"
    if all(tangent is None for tangent in tangents):
        return "zero" if abs(backward) < 1e-8 else "wrong"
    pairs = [(v, t) for v, t in zip(_vectors(outputs, 1), tangents, strict=True) if t is not None]
    found = _product(*zip(*pairs, strict=True))
    return "yes" if _relative(found, backward) < (1e-6 if _in_double(outputs) else 1e-2) else "wrong"


def _second(call: Call) -> str:
    inputs = call.differentiable
    directions = _vectors(inputs, 3)
    weights = _vectors(inputs, 4)

    def slope(at: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return _gradients(call(at), at, create_graph=True)

    try:
        first = slope(inputs)
        parts = [(g, w) for g, w in zip(first, weights, strict=True) if g.requires_grad]
        if not parts:
            return "zero"
        slopes, along = zip(*parts, strict=True)
        found = torch.autograd.grad(slopes, inputs, along, allow_unused=True)
    except (NotImplementedError, RuntimeError):
        return "no"
    if not _in_double(call()):
        return "yes"
    second = [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]
    up, down = (
        _product(weights, [g.detach() for g in slope(_moved(inputs, directions, step))]) for step in (STEP, -STEP)
    )
    return "yes" if _relative((up - down) / (2 * STEP), _product(second, directions)) < 1e-4 else "wrong"


def _sum_up(answers: Iterator[str]) -> str:
    """One answer for all samples: a fault in one is a fault."""
    found = set(answers)
    return next((answer for answer in ("wrong", "no", "yes", "zero") if answer in found), "")


# -- Other dtypes ---------------------------------------------------------------------------------


def _compare(row: Row, operator: Any, dtype: torch.dtype) -> None:
    """Note whether the operator has a derivative in ``dtype``, and whether it records there as in float64."""
    name = str(dtype).removeprefix("torch.")
    other = Row(row.name, row.path)
    try:
        calls = list(_calls(operator, dtype))
        for call in _calls(operator, dtype, checked=True):
            _gradients(call(), call.differentiable)
    except RuntimeError:  # what the database does not say: no backward in this dtype
        return
    if not calls:
        return
    _record(other, calls)
    row.dtypes = sorted([*row.dtypes, name])
    if (other.nodes, other.saves, other.shares) != (row.nodes, row.saves, row.shares):
        row.differs.append(name)
