"""A graph as a program that computes its numbers again from other values of its leaves.

There is one if there is a rule for every node, and if the numbers with which it was called are known: nodes saved them, or
they follow from what is known of the result. It is run once with PyTorch's own operations. A program that does not give the
values and gradients that the script has is none: the leaf was changed since, a hook changed a gradient, or two backward
passes added up.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from graphs.model import CHANGEABLE, Card, Edge, Instruction, Program
from graphs.rules import RULES

from .operands import LARGEST, OF_TENSORS, Operand, called_with, is_accumulate, is_known, operand, operands

#: The names in forward formulas.
_TORCH = {
    name: getattr(torch, name)
    for name in (
        *("abs", "clamp", "cos", "exp", "log", "log1p", "maximum", "minimum", "relu"),
        *("rsqrt", "sigmoid", "sin", "sqrt", "tan", "tanh"),
    )
} | {"softplus": torch.nn.functional.softplus}

#: For nodes that move numbers: from where each number of the result comes, given the places of the inputs' numbers.
_TAKES: dict[str, Callable[[Any, list[torch.Tensor], Sequence[int]], torch.Tensor]] = {
    "CloneBackward0": lambda node, inputs, shape: inputs[0],
    "ExpandBackward0": lambda node, inputs, shape: inputs[0].expand(shape),
    "SelectBackward0": lambda node, inputs, shape: inputs[0].select(
        _signed(node._saved_dim), _signed(node._saved_index)
    ),
    "StackBackward0": lambda node, inputs, shape: torch.stack(inputs, _signed(node._saved_dim)),
    "TBackward0": lambda node, inputs, shape: inputs[0].t(),
    "UnbindBackward0": lambda node, inputs, shape: torch.stack(inputs[0].unbind(_signed(node._saved_dim))),
    "ViewBackward0": lambda node, inputs, shape: inputs[0].reshape(shape),
}
_WHOLE = {"MeanBackward0": "mean", "ProdBackward0": "prod", "SumBackward0": "sum"}
_SOLVED = {
    "AddBackward0": lambda y, other, place: y - other,
    "RsubBackward1": lambda y, other, place: y + other,
    "SubBackward0": lambda y, other, place: other - y if place else y + other,
}


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def program_of(
    order: Iterable[Any],
    keys: Mapping[Any, int],
    cards: Mapping[int, Card],
    edges: Sequence[Edge],
    outputs: Mapping[Any, Mapping[str, torch.Tensor]],
) -> Program | None:
    """The program of a graph, or None.

    :param order: the nodes, each after those that feed it, with their ``keys``.
    :param outputs: the tensors that the script can name, by node and number of the output.
    """
    order = list(order)
    known = [node for node in order if not is_accumulate(node)]
    if not known or not all(is_known(node) for node in known):
        return None
    types = {meta.dtype for node in known for meta in node._input_metadata}
    on_cpu = all(meta.device.type == "cpu" for node in order for meta in node._input_metadata)
    if not on_cpu or len(types) != 1 or not types <= {torch.float32, torch.float64}:
        return None
    (dtype,) = types
    with torch.enable_grad():
        return _Maker(dtype, keys, cards, edges, outputs).program(order)


class _Maker:
    def __init__(
        self,
        dtype: torch.dtype,
        keys: Mapping[Any, int],
        cards: Mapping[int, Card],
        edges: Sequence[Edge],
        outputs: Mapping[Any, Mapping[str, torch.Tensor]],
    ) -> None:
        self.dtype, self.keys, self.cards = dtype, keys, cards
        self.entering: dict[int, list[Edge]] = {}
        for edge in edges:
            self.entering.setdefault(edge.head, []).append(edge)
        self.named: dict[int, list[torch.Tensor]] = {}
        for (node, number), names in outputs.items():
            if node in keys and number == 0 and len(node._input_metadata) == 1:
                self.named[keys[node]] = list(names.values())
        self.instructions: dict[int, Instruction] = {}
        self.values: dict[int, torch.Tensor] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.observed: dict[int, Operand] = {}

    def program(self, order: list[Any]) -> Program | None:
        for node in order:
            self._observe(node)
        for node in order:
            made = self._leaf(node) if is_accumulate(node) else self._function(node)
            if not made:
                return None
        start = {
            card.key: _start(card, self.values[card.key].numel()) for card in self.cards.values() if card.is_root
        }
        called = [card for card in self.cards.values() if card.kind in ("function", "accumulate")]
        called.sort(key=lambda card: card.backward_at)
        can_change = any(one.operation == "leaf" and one.size <= CHANGEABLE for one in self.instructions.values())
        if not can_change or not self._shows_what_follows() or not self._gives_what_the_script_has(start):
            return None
        by_key = dict(sorted(self.instructions.items()))
        return Program(self.dtype == torch.float32, by_key, start, tuple(card.key for card in called))

    def _shows_what_follows(self) -> bool:
        """Whether a number other than the leaf's own stands on a card."""
        cards = self.cards.values()
        return any(_gradients(card) or (card.kind == "function" and _values(card)) for card in cards)

    # -- what is known of values ------------------------------------------------------------------

    def _observe(self, node: Any) -> None:
        """Note what is known of values: of the node's result, and of its inputs."""
        if is_accumulate(node):
            return
        key = self.keys[node]
        tensors = self.named.get(key, [])
        # an output of several is no whole value
        whole = [edge for edge in self.entering.get(key, []) if self.cards[edge.tail].shape is not None]
        seen = {edge.tail: operands(node).get(edge.input) for edge in whole}
        for tail, found in (
            seen | {key: operands(node).get(-1) or (operand(tensors[0]) if tensors else None)}
        ).items():
            if found is not None:
                self.observed.setdefault(tail, found)

    # -- instructions -----------------------------------------------------------------------------

    def _add(self, key: int, instruction: Instruction, shape: Sequence[int], value: torch.Tensor) -> bool:
        self.instructions[key], self.shapes[key], self.values[key] = instruction, tuple(shape), value
        return True

    def _given(self, key: int, kind: str, shape: Sequence[int], numbers: Sequence[float]) -> bool:
        value = _tensor(numbers, self.dtype).requires_grad_(kind == "leaf")
        return self._add(key, Instruction(kind, len(numbers), numbers=_rounded(value)), shape, value)

    def _leaf(self, node: Any) -> bool:
        key = self.keys[node]
        found = operand(node.variable)
        if found is None:
            return False
        shown = next((edge.tail for edge in self.entering.get(key, [])), None)
        if shown is None:
            return self._given(key, "leaf", found.shape, found.numbers)
        self._given(shown, "leaf", found.shape, found.numbers)
        return self._take(key, [shown], _range(len(found.numbers)), found.shape)

    def _take(self, key: int, tails: list[int], places: torch.Tensor, shape: Sequence[int]) -> bool:
        given = torch.cat([self.values[tail] for tail in tails])
        instruction = Instruction("take", places.numel(), tuple(tails), (tuple(places.flatten().tolist()),))
        return self._add(key, instruction, shape, given[places.flatten()])

    def _function(self, node: Any) -> bool:
        key, name = self.keys[node], type(node).__name__
        meta = node._input_metadata
        shape, edges = tuple(meta[0].shape), sorted(self.entering.get(key, []), key=lambda edge: edge.input)
        if name not in OF_TENSORS:
            return self._elementwise(node, key, shape, edges)
        tails = [edge.tail for edge in edges]
        if any(tail not in self.values or edge.output for tail, edge in zip(tails, edges, strict=True)):
            return False
        if name in _TAKES:
            sizes = [self.values[tail].numel() for tail in tails]
            first = [sum(sizes[:number]) for number in range(len(sizes))]
            places = [
                _range(size).reshape(self.shapes[tail]) + begin
                for size, tail, begin in zip(sizes, tails, first, strict=True)
            ]
            return self._take(
                key, tails, _TAKES[name](node, places, shape), (len(meta), *shape) if len(meta) > 1 else shape
            )
        value = getattr(self.values[tails[0]], _WHOLE[name])().reshape(1)
        return self._add(key, Instruction(_WHOLE[name], 1, tuple(tails)), shape, value)

    def _elementwise(self, node: Any, key: int, shape: tuple[int, ...], edges: list[Edge]) -> bool:
        size, numbers = math.prod(shape), called_with(node)
        if size > LARGEST or numbers is None or not edges or len(node._input_metadata) != 1:
            return False
        if not self._constants(node, key, shape, edges):
            return False
        if type(node).__name__ == "RsubBackward1":
            constant = self._solved(type(node).__name__, key, shape, edges[0], 0)
            if constant is None or len(set(constant.numbers)) != 1:
                return False
            numbers = constant.numbers[:1]
        places = [self._places(edge, shape) for edge in edges]
        letters = dict(
            zip(
                "ab", (self.values[edge.tail][place] for edge, place in zip(edges, places, strict=True)), strict=False
            )
        )
        value = eval(RULES[type(node).__name__][0], _TORCH | letters | dict(zip("nm", numbers, strict=False)))
        short = [
            None
            if self.values[edge.tail].numel() == 1 or place == list(range(self.values[edge.tail].numel()))
            else tuple(place)
            for edge, place in zip(edges, places, strict=True)
        ]
        called = _rounded(_tensor(numbers, self.dtype))
        instruction = Instruction(type(node).__name__, size, tuple(edge.tail for edge in edges), tuple(short), called)
        return self._add(key, instruction, shape, value)

    def _places(self, edge: Edge, shape: tuple[int, ...]) -> list[int]:
        """Which number of an input, of all its outputs, meets each number of a result of ``shape``."""
        whole = self.shapes[edge.tail]
        outputs = self.cards[edge.tail].kind == "function" and self.cards[edge.tail].shape is None
        places = _range(math.prod(whole)).reshape(whole)
        return (places[edge.output] if outputs else places).expand(shape).flatten().tolist()

    # -- constants --------------------------------------------------------------------------------

    def _constants(self, node: Any, key: int, shape: tuple[int, ...], edges: list[Edge]) -> bool:
        """Find the values of the inputs that need no gradient, and say whether all are known."""
        own = {found.address for tail, found in self.observed.items() if self.cards[tail].kind != "constant"}
        for edge in edges:
            if self.cards[edge.tail].kind != "constant":
                continue
            found = operands(node).get(edge.input)
            if found is None:
                others = [other for other in edges if other.tail in self.values]
                found = self._solved(type(node).__name__, key, shape, others[0], edge.input) if others else None
            elif found.address in own:
                return False  # detached from a tensor of this graph: with another leaf it would be another constant
            if found is None:
                return False
            self._given(edge.tail, "constant", found.shape, found.numbers)
        return True

    def _solved(self, name: str, key: int, shape: tuple[int, ...], known: Edge, place: int) -> Operand | None:
        """The constant at ``place`` of a sum or a difference, from its result and its other input."""
        if name not in _SOLVED or key not in self.observed:
            return None
        y = _tensor(self.observed[key].numbers, torch.float64)
        other = self.values[known.tail].detach().double()[self._places(known, shape)]
        numbers = _SOLVED[name](y, other, place).tolist()
        digits = 6 if self.dtype == torch.float32 else 14
        numbers = [float(f"{number:.{digits}g}") for number in numbers]
        return Operand((), (numbers[0],), 0) if len(set(numbers)) == 1 else Operand(shape, tuple(numbers), 0)

    # -- the proof --------------------------------------------------------------------------------

    def _gives_what_the_script_has(self, start: Mapping[int, tuple[float, ...]]) -> bool:
        wanted = [key for key, value in self.values.items() if value.requires_grad]
        roots = [self.values[key] for key in start]
        first = [_tensor(numbers, self.dtype) for numbers in start.values()]
        found = torch.autograd.grad(roots, [self.values[key] for key in wanted], first, allow_unused=True)
        gradients = dict(zip(wanted, found, strict=True))
        for key, card in self.cards.items():
            value, gradient = self.values.get(key), gradients.get(key)
            for has, gives in ((_values(card), value), (_gradients(card), gradient)):
                if has is None or (gives is None and card.kind != "leaf"):
                    continue
                if not _close(_tensor(has, self.dtype), gives):
                    return False
            if card.gradient_shape is not None and _gradients(card) is None and card.kind != "leaf":
                return False
        observed = ((self.values[key], found) for key, found in self.observed.items() if key in self.values)
        return all(_close(_tensor(one.numbers, self.dtype), value) for value, one in observed)


# A script may have set another default device.
def _tensor(numbers: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype, device="cpu")


def _range(count: int) -> torch.Tensor:
    return torch.arange(count, device="cpu")


def _start(card: Card, size: int) -> tuple[float, ...]:
    return _gradients(card) or (1.0,) * size


def _values(card: Card) -> tuple[float, ...] | None:
    return card.numbers or (None if card.value is None else (card.value,))


def _gradients(card: Card) -> tuple[float, ...] | None:
    return card.gradient_numbers or (None if card.gradient is None else (card.gradient,))


def _close(expected: torch.Tensor, found: torch.Tensor | None) -> bool:
    if found is None or expected.shape != found.shape:
        return False
    relative = 1e-5 if expected.dtype == torch.float32 else 1e-12
    return torch.allclose(found.detach(), expected, rtol=relative, atol=relative, equal_nan=True)


def _rounded(tensor: torch.Tensor) -> tuple[float, ...]:
    """The numbers of ``tensor``, with no more digits than tell each from its neighbors.

    >>> _rounded(torch.tensor([0.1, 2.0]))
    (0.1, 2.0)
    """
    numbers = tensor.detach().tolist()
    return tuple(numbers) if tensor.dtype == torch.float64 else tuple(map(_shortest, numbers))


def _shortest(number: float) -> float:
    """The shortest number that is ``number`` in float32."""
    written = (float(f"{number:.{digits}g}") for digits in range(6, 10))
    return next((one for one in written if struct.unpack("f", struct.pack("f", one))[0] == number), number)
