"""The rules of a card, with the names of the script: what its node's backward sends to each input."""

from __future__ import annotations

import re

from graphs.model import Card, Graph
from graphs.rules import RULES

_BROADCAST = {"AddBackward0", "DivBackward0", "MulBackward0", "SubBackward0"}
_LETTER = re.compile(r"\b[abcy]\b(?!\()")


def rules_of(graph: Graph, card: Card) -> list[tuple[int, str]]:
    """What backward of ``card`` sends: the key of each input's card, and the rule with the script's own names in it.

    Empty for an operation without a rule, and where an input's shape is not known.

    >>> from graphs.model import Card, Edge, Graph
    >>> x, y = Card(0, "leaf", names=("x",), shape=()), Card(1, "function", "ExpBackward0", ("y",), shape=())
    >>> rules_of(Graph((x, y), (Edge(0, 1),)), y)
    [(0, 'grad * y')]
    """
    entering = sorted((edge for edge in graph.edges if edge.head == card.key), key=lambda edge: edge.input)
    rules = RULES.get(card.operation, ())[1:]
    if len(card.names) > 1 or not rules or any(edge.input >= len(rules) for edge in entering):
        return []
    at = {other.key: other for other in graph.cards}
    names = {"abc"[edge.input]: _name(at[edge.tail]) for edge in entering} | {"y": _name(card)}
    sent = []
    for edge in entering:
        tail = at[edge.tail]
        if tail.kind == "constant":
            continue
        rule = rules[edge.input]
        if card.operation in _BROADCAST and tail.shape != card.shape:
            if tail.shape is None or card.shape is None:
                return []
            rule = f"{rule if rule == 'grad' else f'({rule})'}.sum_to_size({'abc'[edge.input]}.shape)"
        sent.append((tail.key, _with_names(rule, names)))
    return sent


def _name(card: Card) -> str:
    return card.names[0] if card.names else ""


def _with_names(rule: str, names: dict[str, str]) -> str:
    """``rule`` with the letters of inputs that have a name replaced by it; a name that is itself a letter stays apart.

    >>> _with_names("-grad * a / b**2", {"a": "b", "b": "h[0]", "y": ""})
    '-grad * b / h[0]**2'
    """
    return _LETTER.sub(lambda found: names.get(found[0]) or found[0], rule)
