"""A graph as the rows of a table: what the drawing shows, for those who cannot see it."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass

from .model import Card, Edge, Graph
from .numbers import format_number, format_row, format_shape


@dataclass(frozen=True, slots=True)
class Row:
    """One card in words. Code terms and numbers only, so that nothing needs translating but the column titles."""

    name: str
    kind: str
    value: str
    gradient: str
    goes_into: str

    def cells(self) -> tuple[str, ...]:
        return astuple(self)


def describe_graph(graph: Graph) -> list[Row]:
    """One row for each card, in the order of the forward pass.

    >>> x, y = Card(0, "leaf", names=("x",), value=3.0, gradient=6.0), Card(1, "function", "PowBackward0", ("y",), True)
    >>> for row in describe_graph(Graph((x, y), (Edge(0, 1, derivative=6.0),))):
    ...     print(row.cells())
    ('x', 'leaf', '3', '6', 'y × 6')
    ('y', 'root · PowBackward0', '', '', '')
    """
    leaving: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        leaving.setdefault(edge.tail, []).append(edge)
    names = names_of(graph)
    return [
        Row(
            names[card.key],
            _kind(card),
            _value(card),
            _gradient(card),
            ", ".join(names[edge.head] + _factor(edge) for edge in leaving.get(card.key, [])),
        )
        for card in graph.cards
    ]


def names_of(graph: Graph) -> dict[int, str]:
    """A name for each card that no other card has: unnamed nodes of one kind are numbered."""
    bare = {card.key: ", ".join(card.names) or card.operation or card.kind for card in graph.cards}
    total = Counter(bare.values())
    seen: Counter[str] = Counter()
    names = {}
    for key, name in bare.items():
        seen[name] += 1
        names[key] = f"{name} #{seen[name]}" if total[name] > 1 else name
    return names


def _kind(card: Card) -> str:
    words = [*(["leaf"] if card.kind == "leaf" else []), *(["root"] if card.is_root else [])]
    operation = card.operation if card.names or not words else ""
    return " · ".join([*words, *([operation] if operation else [])])


def _value(card: Card) -> str:
    parts = []
    if card.value is not None:
        parts.append(format_number(card.value))
    elif card.shape:
        numbers = f": {format_row(card.numbers)}" if card.numbers else ""
        parts.append(f"{format_shape(card.shape)} {card.dtype}{numbers}")
    if card.saved and not card.is_scalar:
        parts.append("saved: " + ", ".join(card.saved))
    return "; ".join(parts)


def _gradient(card: Card) -> str:
    if card.gradient is None:
        if card.gradient_numbers:
            return format_row(card.gradient_numbers)
        return "" if card.gradient_shape is None else format_shape(card.gradient_shape)
    terms = [format_number(term) for term in card.terms]
    return " = ".join([format_number(card.gradient), *([" + ".join(terms)] if terms else [])])


def _factor(edge: Edge) -> str:
    output = f" (out {edge.output})" if edge.output else ""
    return output + ("" if edge.derivative is None else f" × {format_number(edge.derivative)}")
