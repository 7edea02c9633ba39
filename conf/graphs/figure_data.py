"""A graph's table, its cards and its play as JSON can hold them, for a figure that answers questions.

Numbers are written out here, so that who shows the figure needs neither torch nor this package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .card_rules import rules_of
from .describe import describe_graph, names_of
from .live_data import live_data
from .model import Card, Graph
from .numbers import format_number, format_row, format_shape, format_sum
from .steps import Step, steps, total

MadeBy = Mapping[str, Sequence[Any]]
"""By a card's key, the line of code that made it, and the numbers of the first and the last line of its statement."""


def figure_data(graph: Graph, made_by: MadeBy) -> dict[str, Any]:
    """``rows`` of the table, ``left_out``, ``cards`` by key, and ``steps``.

    A graph with a program has ``live`` too.

    :param made_by: the code that made the cards, of those of which it is known.
    """
    names = names_of(graph)
    live = {"live": live_data(graph, names)} if graph.program else {}
    return live | {
        "rows": [row.cells() for row in describe_graph(graph)],
        "left_out": graph.left_out,
        "cards": {str(card.key): _card(graph, card, names, made_by) for card in graph.cards},
        "steps": [_step(graph, step, names) for step in steps(graph)],
    }


def _card(graph: Graph, card: Card, names: Mapping[int, str], made_by: MadeBy) -> dict[str, Any]:
    """What is known of a card. What is not known, or does not apply, is left out."""
    line, *at = made_by.get(str(card.key), ("",))
    facts = {
        "name": names[card.key],
        "kind": card.kind,
        "node": card.operation if card.names else "",
        "line": line,
        "at": list(at),
        "value": _value(card),
        "gradient": _gradient(card),
        "saved": list(card.saved),
        "sends": [[names[key], rule] for key, rule in rules_of(graph, card)],
    }
    return {name: fact for name, fact in facts.items() if fact}


def _value(card: Card) -> str:
    if card.value is not None:
        return format_number(card.value)
    numbers = f": {format_row(card.numbers)}" if card.numbers else ""
    return f"{format_shape(card.shape)} {card.dtype}{numbers}" if card.shape else ""


def _gradient(card: Card) -> str:
    if card.gradient is not None:
        total = format_number(card.gradient)
        return f"{format_sum(card.terms)} = {total}" if 1 < len(card.terms) < 5 else total
    if card.gradient_numbers:
        return format_row(card.gradient_numbers)
    return "" if card.gradient_shape is None else format_shape(card.gradient_shape)


def _step(graph: Graph, step: Step, names: Mapping[int, str]) -> dict[str, Any]:
    """A step with what its sentence needs: ``who``, ``what`` about the card, and for backward ``to``: card, number, sum."""
    at = {card.key: card for card in graph.cards}
    (first, *_) = cards = [at[key] for key in step.cards]
    said: dict[str, Any] = {"kind": step.kind, "cards": list(step.cards), "edges": list(step.edges)}
    if step.kind == "leaves":
        said["what"] = [_with_value(card, names) for card in cards if card.kind == "leaf"]
    elif step.kind == "compute":
        said |= {"who": first.operation, "what": _with_value(first, names) if first.names else ""}
    elif step.kind == "send":
        node = f"{first.operation} ({names[first.key]})" if first.names else names[first.key]
        tails = [graph.edges[number].tail for number in step.edges]
        numbers = [None if number is None else format_number(number) for number in step.moved]
        said |= {"who": node, "to": [[names[tail], number] for tail, number in zip(tails, numbers, strict=True)]}
        said["sums"] = [
            [names[tail], len(terms), _sum(terms)]
            for tail, terms in dict(zip(tails, step.arrived, strict=True)).items()
            if len(terms) > 1
        ]
        said["arrived"] = {
            str(tail): _arrived(at[tail], terms) for tail, terms in zip(tails, step.arrived, strict=True)
        }
    else:
        (terms,) = step.arrived
        whole = total(terms)
        said |= {"who": names[first.key], "arrived": {str(first.key): _arrived(first, terms)}}
        if whole is not None:
            said["what"] = format_number(first.gradient if first.gradient is not None else whole)
    return said


def _with_value(card: Card, names: Mapping[int, str]) -> str:
    if card.value is not None:
        return f"{names[card.key]} = {format_number(card.value)}"
    return f"{names[card.key]} ({format_shape(card.shape)})" if card.shape else names[card.key]


def _arrived(card: Card, terms: tuple[float | None, ...]) -> str | None:
    """The sum of what has arrived or, where that is no number, its shape."""
    whole = total(terms)
    return (format_shape(card.shape) if card.shape else None) if whole is None else format_number(whole)


def _sum(terms: tuple[float | None, ...]) -> str | None:
    whole = total(terms)
    known = [term for term in terms if term is not None]
    return None if whole is None or len(terms) > 5 else f"{format_sum(known)} = {format_number(whole)}"
