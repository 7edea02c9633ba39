"""A graph as a play: forward, node by node, then backward in the engine's order, and all that a figure can say of it.

The numbers are those of the run: values and gradients of the tensors, and local derivatives that the nodes themselves gave.
What moves along an edge is their product. Where the products do not add up to a gradient that a tensor holds (a hook changed
it, or two backward passes added up), no number is said at all.

A figure whose leaves can be changed has each sentence a second time, with places for the numbers in brackets that no code has:
⟦v3⟧ is the value of the card 3, ⟦s1.0,r5⟧ the sum of what moves back to the first input of the node 1 and of the gradient with
which backward starts at 5. ``conf/drawgrad/web/graph_live.js.jinja`` fills them.
"""

from __future__ import annotations

import math
import re
from cmath import isclose
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .describe import describe_gradient, describe_value, format_number, format_shape, format_sum, name_cards
from .model import CHANGEABLE, Card, Edge, Graph, Instruction
from .rules import ELEMENTWISE, RULES

_ADDED = 5  # numbers in one sum


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of the play.

    ``leaves``: the cards are there before anything is computed. ``compute``: forward runs the card's node. ``start``: the
    first gradient arrives at the card, a root. ``send``: backward calls the card's node, and gradients move along ``edges``.
    ``keep``: AccumulateGrad adds what has arrived to the card's ``.grad``.
    """

    kind: str
    #: Keys of the cards it is about.
    cards: tuple[int, ...]
    #: Places in ``Graph.edges``: those that values, or gradients, move along.
    edges: tuple[int, ...] = ()
    #: What moves along each of ``edges`` in backward; None where it is no number, or is not known.
    moved: tuple[float | None, ...] = ()
    #: For ``start`` and ``keep``, of the card, and for ``send``, of the card at the tail of each of ``edges``: all that has
    #: arrived there until then, contribution by contribution.
    arrived: tuple[tuple[float | None, ...], ...] = ()
    #: Whence that came: ``r5`` for the start at the card 5, ``1.0`` for the first input of the node 1.
    sources: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)


def play_graph(graph: Graph) -> list[Step]:
    """The play of ``graph``: of a graph that is left out in part, what is drawn of it.

    >>> x = Card(0, "leaf", names=("x",), backward_at=1)
    >>> y = Card(1, "function", "SinBackward0", ("y",), is_root=True, shape=())
    >>> for step in play_graph(Graph((x, y), (Edge(0, 1, derivative=0.5),))):
    ...     print(step.kind, step.cards, step.edges, step.moved, step.arrived)
    leaves (0,) () () ()
    compute (1,) (0,) () ()
    start (1,) () () ((1.0,),)
    send (1,) (0,) (0.5,) ((0.5,),)
    keep (0,) () () ((0.5,),)
    """
    played, arrived = _play_all(graph, with_numbers=True)
    pairs = [(arrived[card.key], card.gradient) for card in graph.cards if card.gradient is not None]
    agrees = all(found is None or isclose(found, gradient, rel_tol=1e-4, abs_tol=1e-6) for found, gradient in pairs)
    return played if agrees else _play_all(graph, with_numbers=False)[0]


def _play_all(graph: Graph, *, with_numbers: bool) -> tuple[list[Step], dict[int, float | None]]:
    """The steps, and the sum of what arrives at each card."""
    at = {card.key: card for card in graph.cards}
    entering: dict[int, list[int]] = {card.key: [] for card in graph.cards}
    for number, edge in enumerate(graph.edges):
        entering[edge.head].append(number)
    computed = [card for card in graph.cards if card.kind in ("function", "folded")]
    there = tuple(card.key for card in graph.cards if card not in computed)
    play = [Step("leaves", there)] if there else []
    computed.sort(key=lambda card: card.forward_at)
    play += [Step("compute", (card.key,), tuple(entering[card.key])) for card in computed]
    arrived: dict[int, list[tuple[float | None, str]]] = {card.key: [] for card in graph.cards}

    def add_step(kind: str, key: int, edges: Sequence[int], moved: tuple[float | None, ...], to: list[int]) -> None:
        numbers = tuple(tuple(number for number, _ in arrived[tail]) for tail in to)
        sources = tuple(tuple(source for _, source in arrived[tail]) for tail in to)
        play.append(Step(kind, (key,), tuple(edges), moved, numbers, sources))

    for card in graph.cards:
        if card.is_root:
            arrived[card.key].append((_start_gradient(card) if with_numbers else None, f"r{card.key}"))
            add_step("start", card.key, (), (), [card.key])
    # a leaf whose AccumulateGrad has a card of its own is not called itself
    not_called = {edge.tail for edge in graph.edges if at[edge.head].kind == "accumulate"}
    called = [card for card in graph.cards if card.kind != "constant" and card.key not in not_called]
    for card in sorted(called, key=lambda card: card.backward_at):
        if card.kind in ("leaf", "accumulate"):
            leaf = at[graph.edges[entering[card.key][0]].tail] if card.kind == "accumulate" else card
            arrived[leaf.key] = arrived[card.key]
            add_step("keep", leaf.key, entering[card.key], (), [leaf.key])
            continue
        whole = add_numbers([number for number, _ in arrived[card.key]])
        numbers = [number for number in entering[card.key] if at[graph.edges[number].tail].kind != "constant"]
        edges = [graph.edges[number] for number in numbers]
        moved = tuple(edge.pass_back(whole) for edge in edges)
        for edge, what in zip(edges, moved, strict=True):
            arrived[edge.tail].append((what, _name_edge(edge)))
        add_step("send", card.key, numbers, moved, [edge.tail for edge in edges])
    return play, {key: add_numbers([number for number, _ in parts]) for key, parts in arrived.items()}


def _start_gradient(card: Card) -> float | None:
    """What backward starts with: 1, for a root that is a number. ``.grad`` tells, where it is kept."""
    if card.shape != () or isinstance(card.gradient, complex):
        return None
    return 1.0 if card.gradient is None else float(card.gradient)


def add_numbers(parts: Sequence[float | None]) -> float | None:
    """The sum of what has arrived; None where a part is not known, or nothing has arrived."""
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


# -- In words -------------------------------------------------------------------------------------


def describe_play(graph: Graph, made_by: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """All that a figure can be asked: ``cards`` by key, and ``steps``, as JSON can hold them.

    Numbers are written out. A graph with a program has ``live`` too: what computes it again, and the same with places.

    :param made_by: by a card's key, the line of code that made it, and the first and the last line of its statement, if known.
    """
    names = name_cards(graph)
    steps = play_graph(graph)
    cards = {str(card.key): _describe_card(graph, card, names, made_by) for card in graph.cards}
    described = {"cards": cards, "steps": [_describe_step(graph, step, names) for step in steps]}
    return described | ({"live": _describe_live(graph, steps, names)} if graph.program else {})


def _describe_card(graph: Graph, card: Card, names: Mapping[int, str], made_by: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a card. What is not known, or does not apply, is left out."""
    line, *at = made_by.get(str(card.key), ("",))
    gradient = describe_gradient(card)
    facts = {
        "name": names[card.key],
        "kind": card.kind,
        "node": card.operation if card.names else "",
        "line": line,
        "at": at,
        "value": describe_value(card),
        "gradient": f"{format_sum(card.terms)} = {gradient}" if 1 < len(card.terms) < _ADDED else gradient,
        "saved": list(card.saved),
        "sends": [[names[key], rule] for key, rule in name_rules(graph, card)],
    }
    return {name: fact for name, fact in facts.items() if fact}


def _mark_place(kind: str, sources: Sequence[str]) -> str:
    return f"⟦{kind}{','.join(sources)}⟧"


def _name_edge(edge: Edge) -> str:
    return f"{edge.head}.{edge.input}"


def _describe_step(
    graph: Graph, step: Step, names: Mapping[int, str], *, is_live: bool = False, starts: bool = False
) -> dict[str, Any]:
    """A step with what its sentence needs: ``who``, ``what`` about the card, and for backward ``to``: card, number, sum.

    :param is_live: with places instead of the numbers of the run.
    :param starts: whether the gradients with which backward starts are known; only then there are places for gradients.
    """
    at = {card.key: card for card in graph.cards}

    def name_with_value(card: Card) -> str:
        if card.value is not None:
            return f"{names[card.key]} = {f'⟦v{card.key}⟧' if is_live else format_number(card.value)}"
        return f"{names[card.key]} ({format_shape(card.shape)})" if card.shape else names[card.key]

    def write_total(card: Card, parts: Sequence[float | None], sources: Sequence[str]) -> str | None:
        if is_live:
            return _mark_place("t", sources) if starts and card.shape == () and sources else None
        whole = add_numbers(parts)
        return None if whole is None else format_number(whole)

    def write_sum(card: Card, parts: Sequence[float | None], sources: Sequence[str]) -> str | None:
        whole = write_total(card, parts, sources)
        if whole is None or len(parts) > _ADDED:
            return None
        return _mark_place("s", sources) if is_live else f"{format_sum(parts)} = {whole}"

    first = at[step.cards[0]]
    said: dict[str, Any] = {"kind": step.kind, "cards": list(step.cards), "edges": list(step.edges)}
    if step.kind == "leaves":
        return said | {"what": [name_with_value(at[key]) for key in step.cards if at[key].kind == "leaf"]}
    if step.kind == "compute":
        return said | {"who": first.operation, "what": name_with_value(first) if first.names else ""}
    edges = [graph.edges[number] for number in step.edges]
    keys = [edge.tail for edge in edges] if step.kind == "send" else [first.key]
    there = {key: (at[key], *parts) for key, *parts in zip(keys, step.arrived, step.sources, strict=True)}
    totals = {key: write_total(*found) for key, found in there.items()}
    shapes = {key: format_shape(at[key].shape) if at[key].shape else None for key in totals}
    said["arrived"] = {str(key): total or shapes[key] for key, total in totals.items()}
    if step.kind == "send":
        moved = zip(edges, step.moved, strict=True)
        to = [[names[edge.tail], write_total(at[edge.tail], [one], [_name_edge(edge)])] for edge, one in moved]
        sums = [[names[key], len(found[1]), write_sum(*found)] for key, found in there.items() if len(found[1]) > 1]
        who = f"{first.operation} ({names[first.key]})" if first.names else names[first.key]
        return said | {"who": who, "to": to, "sums": sums}
    kept = totals[first.key]
    if kept is not None and first.gradient is not None and not is_live:
        kept = format_number(first.gradient)  # what .grad holds in the end; before backward the sum
    return said | {"who": names[first.key]} | ({} if kept is None else {"what": kept})


# -- Figures whose leaves can be changed ----------------------------------------------------------


def _describe_live(graph: Graph, steps: list[Step], names: Mapping[int, str]) -> dict[str, Any]:
    """The program, ``leaves`` that can be changed, ``steps`` and ``cards`` with places, and what moves along ``edges``."""
    program = graph.program
    roots = [card for card in graph.cards if card.is_root]
    starts = all(card.shape == () or card.gradient_numbers for card in roots)
    sources: dict[int, tuple[str, ...]] = {}
    for step in steps:
        keys = [graph.edges[number].tail for number in step.edges] if step.kind == "send" else step.cards
        sources |= dict(zip(keys, step.sources, strict=False))
    leaves = [card.key for card in graph.cards if card.kind == "leaf"]
    return {
        "float32": program.is_float32,
        "nodes": {str(key): _write_instruction(one) for key, one in program.instructions.items()},
        "start": {str(key): list(map(_write_number, numbers)) for key, numbers in program.start.items()},
        "backward": list(program.backward),
        "leaves": {str(key): names[key] for key in leaves if program.instructions[key].size <= CHANGEABLE},
        "roots": [f"{names[card.key]} = ⟦v{card.key}⟧" for card in roots if card.value is not None],
        "edges": {str(at): _name_edge(edge) for at, edge in enumerate(graph.edges) if edge.derivative is not None},
        "steps": [_describe_step(graph, step, names, is_live=True, starts=starts) for step in steps],
        "cards": {str(card.key): _place_numbers(graph, card, sources.get(card.key, ())) for card in graph.cards},
    }


def _place_numbers(graph: Graph, card: Card, sources: Sequence[str]) -> dict[str, str]:
    """Of a card whose value, or gradient, is written: its place."""
    facts = {}
    if card.value is not None:
        facts["value"] = f"⟦v{card.key}⟧"
    elif card.numbers:
        facts["value"] = f"{format_shape(card.shape or ())} {card.dtype}: ⟦w{card.key}⟧"
    if card.gradient is not None and sources:
        facts["gradient"] = _mark_place("t", sources)
        if 1 < len(card.terms) < _ADDED:
            called_at = {other.key: other.backward_at for other in graph.cards}
            leaving = sorted(graph.edges, key=lambda edge: called_at[edge.head])
            terms = _mark_place("u", [_name_edge(edge) for edge in leaving if edge.tail == card.key])
            facts |= {"gradient": f"{terms} = {facts['gradient']}", "terms": f"= {terms}"}
    elif card.gradient_numbers and sources:
        facts["gradient"] = _mark_place("W", sources)
    return facts


def _write_instruction(one: Instruction) -> list[Any]:
    """What ``graph_live.js`` computes: operation, size, inputs, places, numbers, without what is empty at the end."""
    places = list(one.places) if any(one.places) else []
    numbers = list(map(_write_number, one.numbers))
    whole = [one.operation.removesuffix("Backward0"), one.size, list(one.inputs), places, numbers]
    while len(whole) > 2 and not whole[-1]:
        whole.pop()
    return whole


def _write_number(number: float) -> float | str:
    """The number as JSON and JavaScript both know it.

    >>> _write_number(2.0), _write_number(0.5), _write_number(math.inf)
    (2, 0.5, 'Infinity')
    """
    if not math.isfinite(number):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")
    is_whole = number == int(number) and abs(number) < 1e15 and str(number) != "-0.0"
    return int(number) if is_whole else number


# -- The rules of a card --------------------------------------------------------------------------

_BROADCAST = {node for node, rules in ELEMENTWISE.items() if len(rules) == 3}
_LETTER = re.compile(r"\b[abcy]\b(?!\()")


def name_rules(graph: Graph, card: Card) -> list[tuple[int, str]]:
    """What backward of ``card`` sends: the key of each input's card, and the rule with the script's own names in it.

    A letter of a rule whose tensor has no name stays. Empty for an operation without a rule, and where an input's shape is
    not known.

    >>> x, y = Card(0, "leaf", names=("x",), shape=()), Card(1, "function", "ExpBackward0", ("y",), shape=())
    >>> name_rules(Graph((x, y), (Edge(0, 1),)), y)
    [(0, 'grad * y')]
    """
    entering = sorted((edge for edge in graph.edges if edge.head == card.key), key=lambda edge: edge.input)
    rules = RULES.get(card.operation, ())[1:]
    if len(card.names) > 1 or not rules or any(edge.input >= len(rules) for edge in entering):
        return []
    at = {other.key: other for other in graph.cards}
    names = {"abc"[edge.input]: at[edge.tail].names[:1] for edge in entering} | {"y": card.names[:1]}
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
        # all letters at once: a name may itself be a letter
        sent.append((tail.key, _LETTER.sub(lambda found: "".join(names.get(found[0]) or found[0]), rule)))
    return sent
