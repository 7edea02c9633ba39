"""A graph as a program that computes its numbers again from other values of its leaves.

There is one if there is a rule for every node, and if the numbers with which it was called are known: nodes saved them, or
they follow from what is known of the result. It is run once with PyTorch's own operations. A program that does not give the
values and gradients that the script has is none: the leaf was changed since, a hook changed a gradient, or two backward
passes added up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from .model import CHANGEABLE, Card, Edge, Instruction, Program
from .nodes import LARGEST, OF_TENSORS, Operand, is_accumulate, is_known, read_call, read_operand, read_operands
from .rules import RULES

#: For nodes that move numbers: from where each number of the result comes, given the places of the inputs' numbers.
_TAKES = {
    "ExpandBackward0": lambda node, inputs, shape: inputs[0].expand(shape),
    "SelectBackward0": lambda node, inputs, shape: inputs[0].select(_read_dim(node), _read_dim(node, "index")),
    "StackBackward0": lambda node, inputs, shape: torch.stack(inputs, _read_dim(node)),
    "UnbindBackward0": lambda node, inputs, shape: torch.stack(inputs[0].unbind(_read_dim(node))),
}
_WHOLE = {"MeanBackward0": "mean", "ProdBackward0": "prod", "SumBackward0": "sum"}
#: The other input of a sum or a difference, from its result: ``place`` is the input's.
_SOLVED = {
    "AddBackward0": lambda y, other, place: y - other,
    "RsubBackward1": lambda y, other, place: y + other,
    "SubBackward0": lambda y, other, place: other - y if place else y + other,
}


def _read_dim(node: Any, name: str = "dim") -> int:
    """A number that the node saved, which it gives without its sign."""
    number = getattr(node, f"_saved_{name}")
    return number - 2**64 if number >= 2**63 else number


def make_program(order: Sequence[Any], keys: Any, cards: Any, edges: Sequence[Edge], outputs: Any) -> Program | None:
    """The program of a graph, or None.

    :param order: the nodes, each after those that feed it, with their ``keys``; ``cards`` by key.
    :param outputs: the tensors that the script can name, by node and number of the output.
    """
    known = [node for node in order if not is_accumulate(node)]
    types = {meta.dtype for node in known for meta in node._input_metadata}
    on_cpu = all(meta.device.type == "cpu" for node in order for meta in node._input_metadata)
    if not all(map(is_known, known)) or not on_cpu or types not in ({torch.float32}, {torch.float64}):
        return None
    # a script may have set another default device, hooks, or that NaN is an error; inference mode and torch.func refuse
    keep = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
    quiet = torch.autograd.set_detect_anomaly  # it sets the mode when it is called
    with suppress(RuntimeError), keep, torch.enable_grad(), torch.device("cpu"), quiet(False):
        return _Maker(types.pop(), keys, cards, edges, outputs).make_from(order, known)
    return None


class _Maker:
    def __init__(self, dtype: torch.dtype, keys: Any, cards: Any, edges: Sequence[Edge], outputs: Any) -> None:
        self.dtype, self.keys, self.cards = dtype, keys, cards
        self.entering: dict[int, list[Edge]] = {}
        for edge in sorted(edges, key=lambda edge: edge.input):
            self.entering.setdefault(edge.head, []).append(edge)
        self.named: dict[int, torch.Tensor] = {}
        for (node, number), names in outputs.items():
            if node in keys and number == 0 and len(node._input_metadata) == 1:
                self.named[keys[node]] = next(iter(names.values()))
        self.instructions: dict[int, Instruction] = {}
        self.values: dict[int, torch.Tensor] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.observed: dict[int, Operand] = {}

    def make_from(self, order: Sequence[Any], known: Sequence[Any]) -> Program | None:
        for node in known:
            self._observe_values(node)
        if not all(self._add_leaf(node) if is_accumulate(node) else self._add_function(node) for node in order):
            return None
        cards = self.cards.values()
        roots = [card for card in cards if card.is_root]
        start = {card.key: _get_gradients(card) or (1.0,) * self.values[card.key].numel() for card in roots}
        can_change = any(one.operation == "leaf" and one.size <= CHANGEABLE for one in self.instructions.values())
        # a number other than the leaf's own must stand on a card
        shows = any(_get_gradients(card) or (card.kind == "function" and _get_values(card)) for card in cards)
        if not can_change or not shows or not self._gives_what_the_script_has(start):
            return None
        called = sorted((card.backward_at, card.key) for card in cards if card.kind in ("function", "accumulate"))
        by_key, backward = dict(sorted(self.instructions.items())), tuple(key for _, key in called)
        return Program(self.dtype == torch.float32, by_key, start, backward)

    def _observe_values(self, node: Any) -> None:
        """Note what is known of values: of the node's result, and of its inputs."""
        key, saved = self.keys[node], read_operands(node)
        # an output of several is no whole value
        whole = [edge for edge in self.entering.get(key, []) if self.cards[edge.tail].shape is not None]
        seen = {edge.tail: saved.get(edge.input) for edge in whole}
        seen[key] = saved.get(-1) or (read_operand(self.named[key]) if key in self.named else None)
        for tail, found in seen.items():
            if found is not None:
                self.observed.setdefault(tail, found)

    # -- Instructions: each method adds one, and says whether it could ---------------------------

    def _add_instruction(self, key: int, instruction: Instruction, shape: Sequence[int], value: torch.Tensor) -> bool:
        self.instructions[key], self.shapes[key], self.values[key] = instruction, tuple(shape), value
        return True

    def _add_given(self, key: int, kind: str, found: Operand) -> bool:
        value = torch.tensor(found.numbers, dtype=self.dtype, requires_grad=kind == "leaf")
        instruction = Instruction(kind, len(found.numbers), numbers=_shorten_numbers(value))
        return self._add_instruction(key, instruction, found.shape, value)

    def _add_leaf(self, node: Any) -> bool:
        key, found = self.keys[node], read_operand(node.variable)
        if found is None:
            return False
        if key not in self.entering:
            return self._add_given(key, "leaf", found)
        shown = self.entering[key][0].tail  # the leaf has a card of its own
        self._add_given(shown, "leaf", found)
        return self._add_take(key, [shown], torch.arange(len(found.numbers)), found.shape)

    def _add_take(self, key: int, tails: list[int], places: torch.Tensor, shape: Sequence[int]) -> bool:
        places = places.flatten()
        instruction = Instruction("take", places.numel(), tuple(tails), (tuple(places.tolist()),))
        value = torch.cat([self.values[tail] for tail in tails])[places]
        return self._add_instruction(key, instruction, shape, value)

    def _add_function(self, node: Any) -> bool:
        key, name, metadata = self.keys[node], type(node).__name__, node._input_metadata
        shape, edges = tuple(metadata[0].shape), self.entering.get(key, [])
        if name not in OF_TENSORS:
            return self._add_elementwise(node, key, shape, edges)
        tails = [edge.tail for edge in edges]
        if any(edge.tail not in self.values or edge.output for edge in edges):
            return False
        if name in _WHOLE:
            value = getattr(self.values[tails[0]], _WHOLE[name])().reshape(1)
            return self._add_instruction(key, Instruction(_WHOLE[name], 1, tuple(tails)), shape, value)
        sizes = [self.values[tail].numel() for tail in tails]
        numbered = torch.arange(sum(sizes)).split(sizes)
        places = [part.reshape(self.shapes[tail]) for part, tail in zip(numbered, tails, strict=True)]
        whole = (len(metadata), *shape) if len(metadata) > 1 else shape
        return self._add_take(key, tails, _TAKES[name](node, places, shape), whole)

    def _add_elementwise(self, node: Any, key: int, shape: tuple[int, ...], edges: list[Edge]) -> bool:
        name, size, numbers = type(node).__name__, math.prod(shape), read_call(node)
        if size > LARGEST or numbers is None or not self._add_constants(node, key, shape, edges):
            return False
        if name == "RsubBackward1":
            constant = self._solve_constant(name, key, shape, edges[0], 0)
            if constant is None or len(set(constant.numbers)) != 1:
                return False
            numbers = constant.numbers[:1]
        places = [self._place_numbers(edge, shape) for edge in edges]
        given = [self.values[edge.tail][place] for edge, place in zip(edges, places, strict=True)]
        letters = dict(zip("ab", given, strict=False)) | dict(zip("nm", numbers, strict=False))
        value = eval(RULES[name][0], vars(torch) | letters)
        sizes = [self.values[edge.tail].numel() for edge in edges]
        matched = zip(sizes, places, strict=True)
        short = tuple(None if count == 1 or place == [*range(count)] else tuple(place) for count, place in matched)
        called = _shorten_numbers(torch.tensor(numbers, dtype=self.dtype))
        instruction = Instruction(name, size, tuple(edge.tail for edge in edges), short, called)
        return self._add_instruction(key, instruction, shape, value)

    def _place_numbers(self, edge: Edge, shape: tuple[int, ...]) -> list[int]:
        """Which number of an input, of all its outputs, meets each number of a result of ``shape``."""
        whole, tail = self.shapes[edge.tail], self.cards[edge.tail]
        places = torch.arange(math.prod(whole)).reshape(whole)
        has_outputs = tail.kind == "function" and tail.shape is None
        return (places[edge.output] if has_outputs else places).expand(shape).flatten().tolist()

    def _add_constants(self, node: Any, key: int, shape: tuple[int, ...], edges: list[Edge]) -> bool:
        """Find the values of the inputs that need no gradient, and say whether all are known."""
        own = {found.address for tail, found in self.observed.items() if self.cards[tail].kind != "constant"}
        for edge in edges:
            if self.cards[edge.tail].kind != "constant":
                continue
            found = read_operands(node).get(edge.input)
            if found is not None and found.address in own:
                return False  # detached from a tensor of this graph: with another leaf it would be another constant
            known = next((other for other in edges if other.tail in self.values), None)
            if found is None and known:
                found = self._solve_constant(type(node).__name__, key, shape, known, edge.input)
            if found is None:
                return False
            self._add_given(edge.tail, "constant", found)
        return True

    def _solve_constant(self, name: str, key: int, shape: tuple[int, ...], known: Edge, place: int) -> Operand | None:
        """The constant at ``place`` of a sum or a difference, from its result and its other input."""
        if name not in _SOLVED or key not in self.observed:
            return None
        y = torch.tensor(self.observed[key].numbers, dtype=torch.float64)
        other = self.values[known.tail].detach().double()[self._place_numbers(known, shape)]
        digits = 6 if self.dtype == torch.float32 else 14
        numbers = tuple(float(f"{number:.{digits}g}") for number in _SOLVED[name](y, other, place).tolist())
        return Operand((), numbers[:1]) if len(set(numbers)) == 1 else Operand(shape, numbers)

    # -- The proof --------------------------------------------------------------------------------

    def _gives_what_the_script_has(self, start: Mapping[int, tuple[float, ...]]) -> bool:
        wanted = [key for key, value in self.values.items() if value.requires_grad]
        roots = [self.values[key] for key in start]
        first = [torch.tensor(numbers, dtype=self.dtype) for numbers in start.values()]
        found = torch.autograd.grad(roots, [self.values[key] for key in wanted], first, allow_unused=True)
        gradients = dict(zip(wanted, found, strict=True))
        for key, card in self.cards.items():
            value, gradient = self.values.get(key), gradients.get(key)
            for has, gives in ((_get_values(card), value), (_get_gradients(card), gradient)):
                if has is not None and (gives is not None or card.kind == "leaf") and not self._is_close(has, gives):
                    return False
            if card.gradient_shape is not None and _get_gradients(card) is None and card.kind != "leaf":
                return False
        seen = ((one.numbers, self.values.get(key)) for key, one in self.observed.items())
        return all(value is None or self._is_close(numbers, value) for numbers, value in seen)

    def _is_close(self, numbers: Sequence[float], found: torch.Tensor | None) -> bool:
        expected = torch.tensor(numbers, dtype=self.dtype)
        if found is None or expected.shape != found.shape:
            return False
        relative = 1e-5 if self.dtype == torch.float32 else 1e-12
        return torch.allclose(found.detach(), expected, rtol=relative, atol=relative, equal_nan=True)


def _get_values(card: Card) -> tuple[float, ...] | None:
    return card.numbers or (None if card.value is None else (card.value,))


def _get_gradients(card: Card) -> tuple[float, ...] | None:
    return card.gradient_numbers or (None if card.gradient is None else (card.gradient,))


def _shorten_numbers(tensor: torch.Tensor) -> tuple[float, ...]:
    """The numbers of ``tensor``, with no more digits than tell each from its neighbors.

    >>> _shorten_numbers(torch.tensor([0.1, 2.0]))
    (0.1, 2.0)
    """

    def shorten_number(number: float) -> float:
        tries = (float(f"{number:.{digits}g}") for digits in range(1, 10))
        return next((short for short in tries if torch.tensor(short, dtype=tensor.dtype) == number), number)

    return tuple(map(shorten_number, tensor.tolist()))
