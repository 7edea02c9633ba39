"""What a figure needs whose leaves can be changed: the graph's program, and its sentences with places for the numbers.

A place says what is to be written there, in brackets that no code has: ⟦v3⟧ is the value of the card 3, ⟦s1.0,r5⟧ the sum of
what moves back to the first input of the node 1 and of the gradient with which backward starts at 5.
``conf/static/graph_live.js.jinja`` fills them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from graphs.model import CHANGEABLE, Card, Edge, Graph, Instruction
from graphs.numbers import format_shape

from .steps import Step, steps


def live_data(graph: Graph, names: Mapping[int, str]) -> dict[str, Any]:
    """``program``, ``leaves`` that can be changed, ``steps`` and ``cards`` with places, and what moves along ``edges``."""
    places = _Places(graph, names)
    played = [places.step(step) for step in steps(graph)]
    program = graph.program
    assert program
    return {
        "float32": program.is_float32,
        "nodes": {str(key): _written(one) for key, one in program.instructions.items()},
        "start": {str(key): _finite(numbers) for key, numbers in program.start.items()},
        "backward": list(program.backward),
        "leaves": {
            str(card.key): names[card.key]
            for card in graph.cards
            if card.kind == "leaf" and program.instructions[card.key].size <= CHANGEABLE
        },
        "roots": [
            f"{names[card.key]} = ⟦v{card.key}⟧" for card in graph.cards if card.is_root and card.value is not None
        ],
        "edges": {str(number): _name(edge) for number, edge in enumerate(graph.edges) if edge.derivative is not None},
        "steps": played,
        "cards": {str(card.key): places.card(card) for card in graph.cards},
    }


def _written(one: Instruction) -> list[Any]:
    whole = [
        one.operation.removesuffix("Backward0"),
        one.size,
        list(one.inputs),
        list(one.places),
        _finite(one.numbers),
    ]
    if not any(one.places):
        whole[3] = []
    while len(whole) > 2 and not whole[-1]:
        whole.pop()
    return whole


def _finite(numbers: Sequence[float]) -> list[float | str]:
    """The numbers as JSON and JavaScript both know them.

    >>> _finite([2.0, 0.5, math.inf])
    [2, 0.5, 'Infinity']
    """
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return [
        (int(one) if one == int(one) and (one or math.copysign(1, one) > 0) and abs(one) < 1e15 else one)
        if math.isfinite(one)
        else words.get(one, "NaN")
        for one in numbers
    ]


def _name(edge: Edge) -> str:
    return f"{edge.head}.{edge.input}"


class _Places:
    """The play of a graph with places instead of numbers."""

    def __init__(self, graph: Graph, names: Mapping[int, str]) -> None:
        self.graph, self.names = graph, names
        self.at = {card.key: card for card in graph.cards}
        self.arrived: dict[int, list[str]] = {}
        roots = [card for card in graph.cards if card.is_root]
        self.starts = all(card.is_scalar or card.gradient_numbers for card in roots)

    def step(self, step: Step) -> dict[str, Any]:
        """As ``figure_data`` writes a step. The steps come in their order: what has arrived adds up."""
        (first, *_) = cards = [self.at[key] for key in step.cards]
        said: dict[str, Any] = {"kind": step.kind, "cards": list(step.cards), "edges": list(step.edges)}
        if step.kind == "leaves":
            return said | {"what": [self._with_value(card) for card in cards if card.kind == "leaf"]}
        if step.kind == "compute":
            return said | {"who": first.operation, "what": self._with_value(first) if first.names else ""}
        if step.kind == "send":
            return said | self._sent(step, first)
        if step.kind == "start":
            self._arrives(first.key, f"r{first.key}")
        if step.kind == "keep" and step.edges:  # of a leaf whose AccumulateGrad has a card of its own
            self.arrived[first.key] = self.arrived.get(self.graph.edges[step.edges[0]].head, [])
        if self._is_known(first):
            said["what"] = self._place("t", first.key)
        return said | {"who": self.names[first.key], "arrived": {str(first.key): self._total(first)}}

    def card(self, card: Card) -> dict[str, str]:
        """Of a card whose value, or gradient, is written: its place. To be called after all steps."""
        facts = {}
        if card.value is not None:
            facts["value"] = f"⟦v{card.key}⟧"
        elif card.numbers:
            facts["value"] = f"{format_shape(card.shape or ())} {card.dtype}: ⟦w{card.key}⟧"
        arrived = self.arrived.get(card.key)
        if card.gradient is not None and arrived:
            facts["gradient"] = self._place("t", card.key)
            if 1 < len(card.terms) < 5:
                edges = [edge for edge in self.graph.edges if edge.tail == card.key]
                terms = ",".join(map(_name, sorted(edges, key=lambda edge: self.at[edge.head].backward_at)))
                facts |= {"gradient": f"⟦u{terms}⟧ = {facts['gradient']}", "terms": f"= ⟦u{terms}⟧"}
        elif card.gradient_numbers and arrived:
            facts["gradient"] = self._place("W", card.key)
        return facts

    def _sent(self, step: Step, card: Card) -> dict[str, Any]:
        edges = [self.graph.edges[number] for number in step.edges]
        for edge in edges:
            self._arrives(edge.tail, _name(edge))
        tails = list(dict.fromkeys(edge.tail for edge in edges))
        known = [self._is_known(self.at[edge.tail]) for edge in edges]
        several = [tail for tail in tails if len(self.arrived[tail]) > 1]
        return {
            "who": f"{card.operation} ({self.names[card.key]})" if card.names else self.names[card.key],
            "to": [
                [self.names[edge.tail], f"⟦t{_name(edge)}⟧" if is_known else None]
                for edge, is_known in zip(edges, known, strict=True)
            ],
            "sums": [[self.names[tail], len(self.arrived[tail]), self._sum(tail)] for tail in several],
            "arrived": {str(tail): self._total(self.at[tail]) for tail in tails},
        }

    def _arrives(self, key: int, what: str) -> None:
        self.arrived.setdefault(key, []).append(what)

    def _is_known(self, card: Card) -> bool:
        return self.starts and card.is_scalar and bool(self.arrived.get(card.key))

    def _place(self, how: str, key: int) -> str:
        return f"⟦{how}{','.join(self.arrived[key])}⟧"

    def _total(self, card: Card) -> str | None:
        if self._is_known(card):
            return self._place("t", card.key)
        return format_shape(card.shape) if card.shape else None

    def _sum(self, key: int) -> str | None:
        return self._place("s", key) if self._is_known(self.at[key]) and len(self.arrived[key]) <= 5 else None

    def _with_value(self, card: Card) -> str:
        name = self.names[card.key]
        if card.value is not None:
            return f"{name} = ⟦v{card.key}⟧"
        return f"{name} ({format_shape(card.shape)})" if card.shape else name
