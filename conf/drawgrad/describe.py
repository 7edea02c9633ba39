"""A graph in words: the rows of a table, for those who cannot see the drawing; how names, numbers and shapes are written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from .model import Card, Edge, Graph

MINUS = "\N{MINUS SIGN}"
#: Of the columns of a graph's table.
TITLES = ("Tensor or node", "What it is", "Value", "Gradient", "Goes into")


def describe_graph(graph: Graph) -> list[tuple[str, str, str, str, str]]:
    """One row for each card, in the order of the forward pass: name, kind, value, gradient, and what it goes into.

    >>> x, y = Card(0, "leaf", names=("x",), value=3.0, gradient=6.0), Card(1, "function", "PowBackward0", ("y",), True)
    >>> for row in describe_graph(Graph((x, y), (Edge(0, 1, derivative=6.0),))):
    ...     print(row)
    ('x', 'leaf', '3', '6', 'y × 6')
    ('y', 'root · PowBackward0', '', '', '')
    """
    names = name_cards(graph)
    leaving: dict[int, list[str]] = {card.key: [] for card in graph.cards}
    for edge in graph.edges:
        leaving[edge.tail].append(names[edge.head] + _describe_factor(edge))
    return [
        (
            names[card.key],
            _describe_kind(card),
            "; ".join(filter(None, [describe_value(card), _describe_saved(card)])),
            " = ".join(filter(None, [describe_gradient(card), " + ".join(map(format_number, card.terms))])),
            ", ".join(leaving[card.key]),
        )
        for card in graph.cards
    ]


def name_cards(graph: Graph) -> dict[int, str]:
    """A name for each card that no other card has: unnamed nodes of one kind are numbered."""
    bare = {card.key: ", ".join(card.names) or card.operation or card.kind for card in graph.cards}
    total, seen = Counter(bare.values()), Counter()
    names = {}
    for key, name in bare.items():
        seen[name] += 1
        names[key] = f"{name} #{seen[name]}" if total[name] > 1 else name
    return names


def describe_value(card: Card) -> str:
    """The value of a card's tensor, or its shape, with the numbers of a small vector; empty where nothing is known."""
    if card.value is not None:
        return format_number(card.value)
    numbers = f": {format_row(card.numbers)}" if card.numbers else ""
    return f"{format_shape(card.shape)} {card.dtype}{numbers}" if card.shape else ""


def describe_gradient(card: Card) -> str:
    """The same of its ``.grad``, or what is wrong with it."""
    if card.alarm:
        return card.alarm
    if card.gradient is not None:
        return format_number(card.gradient)
    if card.gradient_numbers:
        return format_row(card.gradient_numbers)
    if card.gradient_norm is not None:
        return f"norm {format_number(card.gradient_norm)}"
    return "" if card.gradient_shape is None else format_shape(card.gradient_shape)


def _describe_kind(card: Card) -> str:
    words = ["leaf" if card.kind == "leaf" else "", "root" if card.is_root else ""]
    operation = card.operation if card.names or not any(words) else ""
    return " · ".join(filter(None, [*words, operation]))


def _describe_saved(card: Card) -> str:
    return "saved: " + ", ".join(card.saved) if card.saved and card.shape != () else ""


def _describe_factor(edge: Edge) -> str:
    output = f" (out {edge.output})" if edge.output else ""
    return output + ("" if edge.derivative is None else f" × {format_number(edge.derivative)}")


# -- Numbers --------------------------------------------------------------------------------------


def format_number(number: float | complex) -> str:
    """Four decimals where that says something, fewer where it does not; a real minus sign.

    >>> format_number(0.25285310), format_number(-202.0), format_number(1.2e-7), format_number(-1.7267885)
    ('0.2529', '−202', '1.2e−07', '−1.7268')
    """
    if isinstance(number, complex):
        sign = MINUS if number.imag < 0 else "+"
        return f"{format_number(number.real)}{sign}{format_number(abs(number.imag))}i"
    if not math.isfinite(number):
        text = str(float(number))
    elif number == int(number) and abs(number) < 1e6:
        text = str(int(number))
    else:
        text = f"{number:.4f}" if 1e-3 <= abs(number) < 1e4 else f"{number:.3g}"
    return text.replace("-", MINUS)


def format_bytes(count: int) -> str:
    """
    >>> format_bytes(48), format_bytes(1500), format_bytes(999_600), format_bytes(2_100_000_000)
    ('48 B', '1.5 kB', '1000 kB', '2.1 GB')
    """
    power = min(len(str(count)) - 1, 12) // 3
    return f"{count} B" if not power else f"{float(f'{count / 1000**power:.3g}'):g} {' kMGT'[power]}B"


def format_row(numbers: Sequence[float]) -> str:
    """A small vector: four digits of each number.

    >>> format_row([1.0, -20.085537, 1e-7])
    '[1, −20.09, 1e−07]'
    """
    return f"[{', '.join(f'{number:.4g}' for number in numbers)}]".replace("-", MINUS)


def format_sum(terms: Sequence[float]) -> str:
    """
    >>> format_sum([0.047, -1.7738])
    '0.0470 + (−1.7738)'
    """
    texts = [format_number(term) for term in terms]
    return " + ".join(f"({text})" if text[0] not in "0123456789" else text for text in texts)


def format_shape(shape: Sequence[int]) -> str:
    """
    >>> format_shape((3, 4)), format_shape(())
    ('3×4', 'scalar')
    """
    return "×".join(str(size) for size in shape) or "scalar"
