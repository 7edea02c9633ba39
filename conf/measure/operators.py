"""What every differentiable operator of PyTorch does with memory and gradients, measured.

``python conf/measure/operators.py OUT.json`` measures what each operator saves for backward, shares with its inputs, and does
when tensors are changed in place, and writes the result to OUT.json. It needs PyTorch, NumPy and expecttest alone.

Operators come as entries of ``torch.testing._internal.common_methods_invocations.op_db``. Everything is measured on samples of
several kinds (``operator_samples``). Where they differ, a row says for which; what the database and the schemas claim is kept
beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

import operator_samples as samples
from crash_safe import answer_each
from operator_samples import Call, Kind, is_differentiable, is_inexact, tell_condition

#: Outcomes of a change in place, from bad to good; of several samples the worst counts. ``refused``: the change itself raises.
#: ``raises``: backward does. ``wrong``: neither, and a gradient is wrong.
OUTCOMES = ("wrong", "raises", "refused", "works")
#: Answers about a derivative, from bad to good: a fault in one sample is a fault.
ANSWERS = ("wrong", "no", "yes", "zero")

RESULTS = {"output", "new"}  # what backward keeps besides inputs
DOCUMENTED = ("", "linalg", "fft", "nn.functional")  # namespaces with a page for each function
STEP = 1e-6  # of central differences in float64: the cube root of its precision, about
ROUNDING = 1e-12  # below it a second derivative is 0: terms that cancel may leave so much
OTHER_DTYPES = (torch.float32, torch.bfloat16, torch.complex64)
IN_OTHER_LAYOUTS = 6  # of the samples that are kept
IN_SINGLE = 3  # samples in float32 whose tensors are changed in place
WITH_ONE_THAT_LEARNS = 2  # samples that are tried so, of those with several that can

#: What Python writes for an operator.
SIGNS = {"add": "+", "sub": "-", "mul": "*", "matmul": "@", "pow": "**", "remainder": "%", "__getitem__": "[]"}
SIGNS |= {"div (no_rounding_mode)": "/", "div (floor_rounding)": "//"}

Tensors = Sequence[torch.Tensor]


@dataclass(slots=True)
class Row:
    """What was found for one operator. Lists hold what its samples showed, each once, sorted."""

    name: str  # as in PyTorch, such as ``linalg.qr``; with the variant in brackets where the database has several
    path: str  # where PyTorch documents the function, such as ``torch.exp``; empty where it does not
    aliases: list[str] = field(default_factory=list)  # other names, signs such as ``@`` among them
    dtypes: list[str] = field(default_factory=list)  # those in which backward ran
    nodes: list[str] = field(default_factory=list)
    saves: list[str] = field(default_factory=list)  # what backward keeps: ``input``, ``output``, ``new``
    inputs: list[str] = field(default_factory=list)  # the names of inputs that are kept, such as ``index``
    shares: str = ""  # whether outputs share memory with inputs: ``always``, ``sometimes``, ``never``
    declared: str = ""  # what the schemas say: ``may share``, ``new``, or nothing where there is no schema
    in_place: str = ""  # the name of the variant that works in place, or nothing
    output_changed: str = ""  # what backward does after the result was changed in place, one of ``OUTCOMES``
    input_changed: str = ""  # the same after an input that requires a gradient was changed in place
    second: str = ""  # second derivative: ``yes``, ``zero``, ``no``, or ``wrong`` where differences disagree
    second_claimed: bool = False
    forward: str = ""  # forward mode: ``yes``, ``zero``, ``no``, or ``wrong`` where it disagrees with backward
    forward_claimed: bool = False
    error: float | None = None  # the largest that ``_measure_error`` found; None if none was computed in float64
    samples: int = 0  # how many calls were measured: each sample in each layout and type
    #: By the name of a field: for which samples it says what it says, where they differ. Of what is kept by its name.
    notes: dict[str, str] = field(default_factory=dict)


def probe_operator(operator: Any) -> Row | None:
    """Measure ``operator``, an entry of ``op_db``; None if it has no derivative or no sample.

    In float64, or in complex128 if it takes complex numbers only. What it records is looked at in other types and layouts too.
    """
    double = torch.float64 if operator.supports_dtype(torch.float64, "cpu") else torch.complex128
    plain, checked = (list(samples.make_calls(operator, double, checked=checked)) for checked in (False, True))
    if not plain:
        return None
    if not all(map(_can_go_back, plain)):
        plain = checked  # the phase of an eigenvector is free, so only some functions of it have a gradient
    layouts = chain.from_iterable(map(samples.in_other_layouts, plain[:IN_OTHER_LAYOUTS]))
    learning = islice(
        filter(None, (list(samples.with_one_that_learns(call)) for call in plain)), WITH_ONE_THAT_LEARNS
    )
    laid_out = [*plain, *filter(_can_go_back, chain(layouts, *learning))]
    others = {dtype: list(_make_calls_in(operator, dtype)) for dtype in OTHER_DTYPES}
    recorded = [*laid_out, *chain.from_iterable(others.values())]

    row = Row(name_operator(operator), _find_documentation(operator), _find_aliases(operator), samples=len(recorded))
    run_in = [double, *(dtype for dtype, found in others.items() if found)]
    row.dtypes = [str(dtype).removeprefix("torch.") for dtype in run_in]
    _record_saved(row, recorded)
    row.declared, row.in_place = _read_declared(operator), _find_in_place(operator)
    changed = [*laid_out, *others[torch.float32][:IN_SINGLE]]
    for what in ("output", "input"):
        _settle_answer(
            row, f"{what}_changed", OUTCOMES, (seen for call in changed for seen in _change_each(what, call))
        )
    row.second_claimed, row.forward_claimed = bool(operator.supports_gradgrad), bool(operator.supports_forward_ad)
    exact = [call.with_tensors(_to_double) for call in checked]
    _settle_answer(row, "second", ANSWERS, chain.from_iterable(map(_check_second, exact)))
    _settle_answer(row, "forward", ANSWERS, ((call.kind, _check_forward(call)) for call in exact))
    errors = [error for error in map(_measure_error, exact) if error is not None]
    row.error = max(errors, key=lambda error: (math.isnan(error), error), default=None)
    return row


def _settle_answer(row: Row, name: str, bad_first: Sequence[str], seen: Iterable[tuple[Kind, str]]) -> None:
    """One answer for all samples, the worst, with a note on which samples give it."""
    found = list(seen)
    worst = min((answer for _kind, answer in found), key=bad_first.index, default="")
    setattr(row, name, worst)
    note = tell_condition([(kind, answer == worst) for kind, answer in found])
    if note and (name, worst) != ("second", "yes"):  # a second derivative that is zero for some samples is there
        row.notes[name] = note


def _make_calls_in(operator: Any, dtype: torch.dtype) -> Iterator[Call]:
    """Samples in another type; none if backward does not run in it, which the database does not say."""
    found: list[Call] = []
    with suppress(RuntimeError):
        found = list(samples.make_calls(operator, dtype))
    if all(map(_can_go_back, found)):
        yield from found
        layouts = map(samples.in_other_layouts, found[: IN_OTHER_LAYOUTS // 2])
        yield from filter(_can_go_back, chain.from_iterable(layouts))


def _to_double(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision: differences of a lower one would measure its rounding."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


# -- Names ----------------------------------------------------------------------------------------


def name_operator(operator: Any) -> str:
    """The operator's name, with its variant in brackets where the database has several."""
    variant = operator.variant_test_name
    return f"{operator.name} ({variant})" if variant else operator.name


def _find_documentation(operator: Any) -> str:
    """Where PyTorch documents the function; empty where it does not."""
    if operator.name.rpartition(".")[0] in DOCUMENTED and not operator.name.startswith("_"):
        for place, path in ((torch, "torch"), (torch.Tensor, "torch.Tensor")):
            found = reduce(lambda found, part: getattr(found, part, None), operator.name.split("."), place)
            if callable(found) and found.__doc__:
                return f"{path}.{operator.name}"
    return ""


def _find_aliases(operator: Any) -> list[str]:
    """Other names: those that the database has, the sign that Python has for it, and where else the function is."""
    name, function = operator.name, operator.op
    names = {alias.name for alias in operator.aliases} | {SIGNS.get(name_operator(operator), name)}
    short = name.rpartition(".")[2]
    if name == short and callable(getattr(functional, short, None)):
        names.add(f"nn.functional.{short}")
    if name == f"nn.functional.{short}" and hasattr(torch, short):
        names.add(f"torch.{short}")
    if name == short and not hasattr(torch, short) and hasattr(torch.Tensor, short):
        names.add(f"Tensor.{short}")
    return sorted(names - {name, getattr(function, "__name__", name)})


def _find_in_place(operator: Any) -> str:
    """The name of the variant that works in place; ``inplace=True`` where it is an argument; or nothing."""
    found, short = getattr(operator.get_inplace(), "__name__", "<lambda>"), operator.name.rpartition(".")[2]
    if found != "<lambda>":
        return found
    if any(callable(getattr(place, f"{short}_", None)) for place in (functional, torch, torch.Tensor)):
        return f"{short}_"
    function = getattr(functional, short, None)
    return "inplace=True" if "inplace" in getattr(getattr(function, "__code__", None), "co_varnames", ()) else ""


def _can_go_back(call: Call) -> bool:
    try:
        _take_gradients(call(), call.differentiable)
    except RuntimeError:
        return False
    return True


def _name_result(call: Call, number: int, of: int) -> Kind:
    """The kind of a sample for one of its results, which are counted from 1; of a single one it need not be said."""
    return {**call.kind, "result": str(number)} if of > 1 else call.kind


# -- What is saved, and what is shared ------------------------------------------------------------


def _record_saved(row: Row, recorded: Sequence[Call]) -> None:
    nodes: set[str] = set()
    keeps: list[tuple[Kind, set[str]]] = []
    shares: list[tuple[Kind, bool]] = []
    for call in recorded:
        saved: dict[int, torch.Tensor] = {}

        def pack_tensor(tensor: torch.Tensor, saved: dict[int, torch.Tensor] = saved) -> torch.Tensor:
            # detached: a result that its own node would hold through this hook would never be freed
            saved.setdefault(_find_memory(tensor), tensor.detach())
            return tensor.detach()

        with saved_tensors_hooks(pack_tensor, lambda kept: kept):
            outputs = call()
        nodes |= {output.grad_fn.name() for output in outputs if output.grad_fn is not None}
        inputs = {_find_memory(tensor): name for name, tensor in reversed(list(call.name_tensors()))}
        results = {_find_memory(tensor) for tensor in outputs}
        keeps.append((call.kind, {inputs.get(place) or ("output" if place in results else "new") for place in saved}))
        for number, output in enumerate(outputs, 1):
            if output.numel() and is_inexact(output):
                shares.append((_name_result(call, number, len(outputs)), _find_memory(output) in inputs))
    row.nodes = sorted(nodes)
    kept = set().union(*(found for _kind, found in keeps))
    row.inputs = sorted(kept - RESULTS)
    row.saves = ["input"] * bool(row.inputs) + sorted(kept & RESULTS, reverse=True)
    for name in sorted(kept):
        # a number is never kept
        given = [pair for pair in keeps if name in RESULTS or pair[0].get(name, "").startswith("a tensor")]
        if note := tell_condition([(kind, name in found) for kind, found in given], but=name):
            row.notes[f"keeps {name}"] = note
    answers = {answer for _kind, answer in shares}
    row.shares = "sometimes" if len(answers) == 2 else "always" if True in answers else "never"
    if len(answers) == 2:
        sharing, copying = (tell_condition([(k, a is wanted) for k, a in shares]) for wanted in (True, False))
        row.notes["shares"] = min(f"copies {copying}", f"shares {sharing}", key=_rate_vagueness)


def _rate_vagueness(note: str) -> int:
    """*If* says more than *only if*, and both more than how many.

    >>> min("copies in most samples", "shares only if sliced", key=_rate_vagueness)
    'shares only if sliced'
    """
    return (" if " not in note) + (" only if " in note or " if " not in note)


def _find_memory(tensor: torch.Tensor) -> int:
    """What two tensors on the same memory have in common."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)


def _read_declared(operator: Any) -> str:
    """Whether a schema of the operator, not its variants with ``out`` or in place, marks a result as sharing memory."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{operator.aten_name}") if operator.aten_name else ()
    plain = (schema for schema in schemas if not any(argument.is_out for argument in schema.arguments))
    marked = {result.alias_info is not None for schema in plain for result in schema.returns}
    return "may share" if True in marked else "new" if marked else ""


# -- Changes in place -----------------------------------------------------------------------------


def _draw_vectors(tensors: Tensors, seed: int) -> list[torch.Tensor]:
    """A fixed random direction for each tensor."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator) for tensor in tensors]


def _take_gradients(outputs: Tensors, inputs: Tensors, **options: Any) -> list[torch.Tensor]:
    """The gradients of the outputs' products with fixed random vectors; zeros for inputs that do not take part."""
    outputs = [output for output in outputs if is_differentiable(output)]
    found = torch.autograd.grad(outputs, inputs, _draw_vectors(outputs, 1), allow_unused=True, **options)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def _change_each(what: str, call: Call) -> Iterator[tuple[Kind, str]]:
    """Add 1 to each output, or to a copy of each input, in turn, which changes no gradient, and see whether backward agrees."""
    inputs = call.differentiable
    if not all(map(_is_copied_as_it_lies, inputs)):
        return
    expected = _take_gradients(call(), inputs)
    names = [name for name, tensor in call.name_tensors() if tensor.requires_grad]
    number = len(names) if what == "input" else sum(map(is_differentiable, call()))
    for index in range(number):
        given = [x.clone() for x in inputs]
        outputs = [output for output in call(given) if is_differentiable(output)]
        kind = {**call.kind, "changed": names[index]} if what == "input" else _name_result(call, index + 1, number)
        yield kind, _judge_change((given if what == "input" else outputs)[index], outputs, inputs, expected)


def _is_copied_as_it_lies(x: torch.Tensor) -> bool:
    """Whether a clone has the strides of the tensor, and no gaps: some operators read what lies between."""
    if x.layout is torch.strided:
        return x.clone().stride() == x.stride() and x.untyped_storage().nbytes() == x.numel() * x.element_size()
    return True


def _judge_change(tensor: torch.Tensor, outputs: Tensors, inputs: Tensors, expected: Tensors) -> str:
    try:
        tensor.add_(1)
    except RuntimeError:
        return "refused"
    try:
        found = _take_gradients(outputs, inputs)
    except RuntimeError:
        return "raises"
    same = all(torch.allclose(a, b, equal_nan=True) for a, b in zip(found, expected, strict=True))
    return "works" if same else "wrong"


# -- Derivatives ----------------------------------------------------------------------------------


def _sum_products(ones: Tensors, others: Tensors) -> float:
    """The sum of all products, of complex numbers the real part of conj(a)·b: what a gradient is the gradient of."""
    return sum((a.conj() * b).real.sum().item() for a, b in zip(ones, others, strict=True))


def _move_inputs(inputs: Tensors, directions: Tensors, step: float) -> list[torch.Tensor]:
    return [(x + step * u).detach().requires_grad_() for x, u in zip(inputs, directions, strict=True)]


def _relative_error(one: float, other: float) -> float:
    return abs(one - other) / max(1.0, abs(one), abs(other))


def _is_double(tensors: Tensors) -> bool:
    return all(tensor.dtype in (torch.float64, torch.complex128) for tensor in tensors if is_differentiable(tensor))


def _measure_error(call: Call) -> float | None:
    """How far backward is from central differences along one random direction, relative to 1 or to the derivative.

    None for a conversion to a lower precision: differences would measure its rounding.
    """
    inputs = call.differentiable
    if not _is_double(call()):
        return None
    directions = _draw_vectors(inputs, 2)

    def find_value(step: float) -> float:
        outputs = [output for output in call(_move_inputs(inputs, directions, step)) if is_differentiable(output)]
        return _sum_products(_draw_vectors(outputs, 1), [output.detach() for output in outputs])

    slope = (find_value(STEP) - find_value(-STEP)) / (2 * STEP)
    return _relative_error(slope, _sum_products(_take_gradients(call(), inputs), directions))


def _check_forward(call: Call) -> str:
    inputs = call.differentiable
    directions = _draw_vectors(inputs, 2)
    backward = _sum_products(_take_gradients(call(), inputs), directions)
    try:
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x.detach(), u) for x, u in zip(inputs, directions, strict=True)]
            outputs = call([dual.requires_grad_() for dual in duals])
            outputs = [output for output in outputs if is_differentiable(output)]
            tangents = [forward_ad.unpack_dual(output).tangent for output in outputs]
    except (NotImplementedError, RuntimeError):
        return "no"
    if all(tangent is None for tangent in tangents):
        return "zero" if abs(backward) < 1e-8 else "wrong"
    pairs = [pair for pair in zip(_draw_vectors(outputs, 1), tangents, strict=True) if pair[1] is not None]
    found = _sum_products(*zip(*pairs, strict=True))
    return "yes" if _relative_error(found, backward) < (1e-6 if _is_double(outputs) else 1e-2) else "wrong"


def _check_second(call: Call) -> list[tuple[Kind, str]]:
    """Of all results together; of each alone if that raises."""
    together, number = _check_second_of(call, None), sum(map(is_differentiable, call()))
    if together != "no" or number == 1:
        return [(call.kind, together)]
    return [(_name_result(call, n + 1, number), _check_second_of(call, n)) for n in range(number)]


def _check_second_of(call: Call, result: int | None) -> str:
    inputs = call.differentiable
    directions, weights = _draw_vectors(inputs, 3), _draw_vectors(inputs, 4)

    def find_slope(at: Tensors) -> list[torch.Tensor]:
        outputs = [output for output in call(at) if is_differentiable(output)]
        return _take_gradients(outputs if result is None else [outputs[result]], at, create_graph=True)

    try:
        first = find_slope(inputs)
        parts = [(g, w) for g, w in zip(first, weights, strict=True) if g.requires_grad]
        if not parts:
            return "zero"
        slopes, along = zip(*parts, strict=True)
        found = torch.autograd.grad(slopes, inputs, along, allow_unused=True)
    except (NotImplementedError, RuntimeError):
        return "no"
    second = [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]
    is_zero = all(g.to_dense().abs().lt(ROUNDING).all() for g in second)
    if not _is_double(call()) or any(x.layout is not torch.strided for x in inputs):
        return "zero" if is_zero else "yes"
    up, down = (
        _sum_products(weights, [g.detach() for g in find_slope(_move_inputs(inputs, directions, step))])
        for step in (STEP, -STEP)
    )
    agrees = _relative_error((up - down) / (2 * STEP), _sum_products(second, directions)) < 1e-4
    return "wrong" if not agrees else "zero" if is_zero else "yes"


# -- All of them ----------------------------------------------------------------------------------


def probe_all(jobs: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The rows of all operators, and by name why others have none."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")  # of deprecated operators, which are probed like all others
    torch.set_num_threads(1)
    operators = [operator for operator in op_db if operator.supports_autograd]
    gc.freeze()  # the children's collections need not walk what they share
    found = list(zip(map(name_operator, operators), answer_each(probe_operator, operators, jobs), strict=True))
    rows = [asdict(row) for _name, (row, _why) in found if row]
    not_probed = {name: why or "no small sample with a derivative" for name, (row, why) in found if row is None}
    rows.sort(key=lambda row: (row["name"].startswith("_"), row["name"].lower()))  # people look for the public ones
    return rows, dict(sorted(not_probed.items()))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--of", type=json.loads, default={}, help="JSON that says what the result depends on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes measure side by side")
    options = parser.parse_args(arguments)
    rows, not_probed = probe_all(options.jobs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found = {"of": options.of, "rows": rows, "not_probed": not_probed}
    options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"operators: {len(rows)} probed, {len(not_probed)} not")


if __name__ == "__main__":
    sys.exit(main())
