"""What a node's backward computes, as a reader would write it: the rule of each common operation.

A rule is Python on the operation's inputs ``a``, ``b``, ``c``, its result ``y`` and the gradient ``grad`` that arrives, in the
order of the node's edges. Every rule is tested against autograd (tests/graphs/test_rules.py).
"""

from __future__ import annotations

import re

from .model import Card, Graph

#: Node: (the operation, what its backward sends to each input).
RULES: dict[str, tuple[str, ...]] = {
    "AbsBackward0": ("abs(a)", "grad * sign(a)"),
    "AddBackward0": ("a + b", "grad", "grad"),
    "AddmmBackward0": ("a + b @ c", "grad.sum_to_size(a.shape)", "grad @ c.T", "b.T @ grad"),
    "CloneBackward0": ("a.clone()", "grad"),
    "CosBackward0": ("cos(a)", "-grad * sin(a)"),
    "DivBackward0": ("a / b", "grad / b", "-grad * a / b**2"),
    "DotBackward0": ("dot(a, b)", "grad * b", "grad * a"),
    "ExpBackward0": ("exp(a)", "grad * y"),
    "LogBackward0": ("log(a)", "grad / a"),
    "Log1PBackward0": ("log1p(a)", "grad / (a + 1)"),
    "MeanBackward0": ("a.mean()", "grad.expand_as(a) / a.numel()"),
    "MmBackward0": ("mm(a, b)", "grad @ b.T", "a.T @ grad"),
    "MulBackward0": ("a * b", "grad * b", "grad * a"),
    "MvBackward0": ("mv(a, b)", "outer(grad, b)", "a.T @ grad"),
    "NegBackward0": ("-a", "-grad"),
    "PowBackward0": ("a**n", "grad * n * a**(n - 1)"),
    "ReciprocalBackward0": ("a.reciprocal()", "-grad * y**2"),
    "ReluBackward0": ("relu(a)", "grad * (a > 0)"),
    "RsqrtBackward0": ("rsqrt(a)", "-grad * y**3 / 2"),
    "SigmoidBackward0": ("sigmoid(a)", "grad * y * (1 - y)"),
    "SinBackward0": ("sin(a)", "grad * cos(a)"),
    "SoftplusBackward0": ("softplus(a)", "grad * sigmoid(a)"),
    "SqrtBackward0": ("sqrt(a)", "grad / (2 * y)"),
    "SubBackward0": ("a - b", "grad", "-grad"),
    "SumBackward0": ("a.sum()", "grad.expand_as(a)"),
    "TBackward0": ("a.t()", "grad.t()"),
    "TanBackward0": ("tan(a)", "grad * (1 + y**2)"),
    "TanhBackward0": ("tanh(a)", "grad * (1 - y**2)"),
    "ViewBackward0": ("a.view(...)", "grad.view_as(a)"),
}

_BROADCAST = {"AddBackward0", "DivBackward0", "MulBackward0", "SubBackward0"}
_LETTER = re.compile(r"\b[abcy]\b(?!\()")


def rules_of(graph: Graph, card: Card) -> list[tuple[int, str]]:
    """What backward of ``card`` sends: the key of each input's card, and the rule with the script's own names in it.

    Empty for an operation without a rule, and where an input's shape is not known.

    >>> from atlas.graphs import Card, Edge, Graph
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
