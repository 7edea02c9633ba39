"""Modules as boxes that fold: found in a graph by the names of its parameters, contracted to one card each, opened again.

A module holds the function cards that were recorded from the first to the last that takes a parameter of it, or of a module
in it. Recording order is a topological order, so a path that leaves such an interval never comes back into it. With the
interval go weights computed from the module's parameters alone, which no path enters; hence contraction makes no cycle.

A module whose interval has a parameter of another module in it, as that of a cell in a loop beside another, is no box: the
module around both is one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, takewhile

from .model import Card, Edge, Graph, merge_cards

Path = tuple[str, ...]
Modules = Mapping[str, frozenset[int]]

#: What looks numbers up gives data, though no other input needs a gradient.
_LOOKS_UP = ("Embedding", "Index", "Gather", "Take")


def find_modules(graph: Graph, roots: Iterable[str] = ()) -> dict[str, frozenset[int]]:
    """The boxes of ``graph``: the keys of the cards in each module, by its path. Boxes are disjoint, or one is in the other.

    ``roots`` are names of whole models, such as ``self.model``; else it is the first part of a parameter's name.

    A module of a single node is none, though its weight be transposed first, nor is one that holds the same cards as the module
    around it.

    >>> weights = Card(0, "leaf", names=("net.0.weight",)), Card(1, "leaf", names=("net.1.weight",))
    >>> products = Card(3, "function", "MvBackward0", recorded_as=0), Card(4, "function", "MvBackward0", recorded_as=1)
    >>> edges = Edge(0, 3), Edge(2, 3, 1), Edge(1, 4), Edge(3, 4, 1)
    >>> find_modules(Graph((*weights, Card(2, "constant"), *products), edges))
    {'net': frozenset({0, 1, 2, 3, 4})}
    """
    numbered = _number_functions(graph)
    recorded = {key: number for number, key in numbered}
    if any(recorded.get(edge.tail, -1) >= recorded.get(edge.head, math.inf) for edge in graph.edges):
        return {}  # recorded by several threads, each with its own numbers
    owners, taken = _find_owners(graph, roots)
    spans: dict[Path, list[int]] = {}
    for number, path, least in taken:
        for length in range(least, len(path) + 1):
            spans.setdefault(path[:length], []).append(number)
    boxes = {path: numbers for path, numbers in spans.items() if not _has_other(path, numbers, taken)}
    homes: dict[int, Path] = {}
    for path, numbers in sorted(boxes.items(), key=lambda box: len(box[0])):
        begin, end = bisect_left(numbered, (numbers[0], -1)), bisect_left(numbered, (numbers[-1] + 1, -1))
        homes |= {key: path for _, key in numbered[begin:end]}
    leaving = _group_pairs((edge.tail, edge.head) for edge in graph.edges)
    for card in reversed(graph.cards):  # what feeds one box alone, and is its own or a constant, is in it
        inside = [homes.get(head, ()) for head in leaving.get(card.key, [])]
        owned = [owners[card.key]] if card.key in owners else []
        if card.key not in homes and inside and (owned or card.kind == "constant"):
            homes[card.key] = _find_common(owned + inside)
    members: dict[Path, set[int]] = {}
    for key, home in homes.items():
        for length in range(len(home)):
            members.setdefault(home[: length + 1], set()).add(key)
    found: dict[str, frozenset[int]] = {}
    for path in sorted(boxes, key=lambda path: (boxes[path][0], len(path))):
        name, keys = ".".join(path), members[path]
        around = [found[other] for other in _list_around(name, found)]
        if len(keys & recorded.keys() - owners.keys()) > 1 and keys not in around:
            found[name] = frozenset(keys)
    return found


def fold_modules(graph: Graph, modules: Modules, depth: int) -> Graph:
    """``graph`` with each box that is in ``depth`` others drawn as one card. At 0 a whole model is one."""
    return _contract(graph, {path: modules[path] for path in modules if len(_list_around(path, modules)) == depth})


def open_module(graph: Graph, modules: Modules, path: str) -> Graph:
    """The inside of the box ``path``, boxes in it folded, with a card of kind ``outside`` for each at the other end of an edge.

    What is inside is named as the module itself would name it: ``linear1.weight``.

    :raises KeyError: if there is no such box.
    """
    way = {path, *_list_around(path, modules)}
    # what is drawn folded: the outermost boxes beside the way to this one, and in it
    folded = {other: modules[other] for other in modules.keys() - way if {*_list_around(other, modules)} <= way}
    whole = _contract(graph, folded)
    kept = {card.key for card in whole.cards if card.key in modules[path]}
    edges = tuple(edge for edge in whole.edges if edge.tail in kept or edge.head in kept)
    ends = {end for edge in edges for end in (edge.tail, edge.head)}
    cards = [_show_alone(card, path, is_inside=card.key in kept) for card in whole.cards if card.key in ends]
    return Graph(tuple(cards), edges)


# -- Where a module begins and ends ---------------------------------------------------------------


def _find_owners(graph: Graph, roots: Iterable[str]) -> tuple[dict[int, Path], list[tuple[int, Path, int]]]:
    """The innermost module that owns all that a card was computed from; and where parameters are taken.

    That is a list in recording order: the number of the function, the path of the parameter's module, and how long a part of
    the path must be to name a module in which the function is no weight.
    """
    numbered = {key: number for number, key in _number_functions(graph)}
    entering = _group_pairs((edge.head, edge.tail) for edge in graph.edges)
    owners: dict[int, Path] = {}
    taken: list[tuple[int, Path, int]] = []
    for card in graph.cards:
        tails = entering.get(card.key, [])
        paths = [owners[tail] for tail in tails if tail in owners]
        own: Path = ()
        if card.kind == "leaf" and card.names:
            own = _read_path(card.names[0], roots)
        elif len(paths) == len(tails) > 0 and not card.operation.startswith(_LOOKS_UP):
            own = _find_common(paths)
        if card.kind == "function" and card.shape == ():
            continue  # one number of a weight, as its norm, is the loss's
        if own:
            owners[card.key] = own
        for tail in tails:
            if len(path := owners.get(tail, ())) > len(own):
                taken += [(numbered[key], path, len(own) + 1) for key in (tail, card.key) if key in numbered]
    return owners, sorted(taken)


def _read_path(name: str, roots: Iterable[str] = ()) -> Path:
    """The module's path in the name of a parameter; empty for another tensor.

    >>> _read_path("model.layers.0.weight"), _read_path("params['layers.0.weight']"), _read_path("x")
    (('model', 'layers', '0'), (), ())
    """
    root = next((one for one in roots if name.startswith(f"{one}.")), "")
    first, *others = name.removeprefix(root).split(".")
    return (root or first, *others[:-1]) if others and (root or first.isidentifier()) else ()


def _has_other(path: Path, numbers: list[int], taken: list[tuple[int, Path, int]]) -> bool:
    """Whether another module, which is neither in ``path`` nor around it, has a parameter taken within ``numbers``."""
    begin, end = bisect_left(taken, (numbers[0], ())), bisect_left(taken, (numbers[-1] + 1, ()))
    return any(one != two for _, other, _ in taken[begin:end] for one, two in zip(path, other, strict=False))


def _find_common(paths: Iterable[Path]) -> Path:
    """What all paths begin with."""
    return tuple(parts[0] for parts in takewhile(lambda parts: len({*parts}) == 1, zip(*paths, strict=False)))


def _list_around(path: str, modules: Iterable[str]) -> list[str]:
    """The boxes around ``path``, outermost first."""
    return [one for one in accumulate(path.split("."), "{}.{}".format) if one in modules and one != path]


def _number_functions(graph: Graph) -> list[tuple[int, int]]:
    """Number and key of each function, in recording order."""
    return sorted((card.recorded_as or 0, card.key) for card in graph.cards if card.kind == "function")


def _group_pairs(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = {}
    for one, other in pairs:
        grouped.setdefault(one, []).append(other)
    return grouped


# -- Drawn as one card ----------------------------------------------------------------------------


def _contract(graph: Graph, folded: Modules) -> Graph:
    """Each set of cards in ``folded`` as one card, and cards again in the order of the forward pass."""
    if not folded:
        return graph
    at = {card.key: card for card in graph.cards}
    stands_for = {key: min(keys) for keys in folded.values() for key in keys}
    merged = [_merge_module(path, [at[key] for key in keys]) for path, keys in folded.items()]
    edges = tuple(_join_cards(graph.edges, stands_for))
    leaving = _group_pairs((edge.tail, edge.head) for edge in edges)
    # a box has the place of its last function; leaves and constants go just before what they feed
    numbered = _number_functions(graph)
    place: dict[int, tuple[float, int]] = {stands_for.get(key, key): (last, 0) for last, key in numbered}
    for card in reversed(graph.cards):
        heads = [place[head] for head in leaving.get(card.key, []) if head in place]
        number, rank = min(heads, default=(math.inf, 0))
        place.setdefault(card.key, (number, rank - 1))
    cards = [*merged, *(card for card in graph.cards if card.key not in stands_for)]
    return Graph(tuple(sorted(cards, key=lambda card: place[card.key])), edges, graph.left_out)


def _join_cards(edges: Iterable[Edge], stands_for: Mapping[int, int]) -> Iterator[Edge]:
    """Of the edges from one output to one card, one is enough if a folded card is at an end. It has no derivative."""
    seen: dict[int, list[tuple[int, int]]] = {}
    for edge in edges:
        tail, head = stands_for.get(edge.tail, edge.tail), stands_for.get(edge.head, edge.head)
        source = tail, 0 if edge.tail in stands_for else edge.output
        if not {edge.tail, edge.head} & stands_for.keys():
            yield edge
        elif tail != head and source not in seen.setdefault(head, []):
            seen[head].append(source)
            yield Edge(tail, head, len(seen[head]) - 1 if edge.head in stands_for else edge.input, source[1])


def _merge_module(path: str, cards: list[Card]) -> Card:
    nodes = sum(card.kind == "function" for card in cards)
    numbers = sum(math.prod(card.shape or ()) for card in cards if card.kind == "leaf")
    said = f"{nodes} nodes" + (f", {numbers:,} parameters" if numbers else "")
    return merge_cards(cards, min(card.key for card in cards), said, (path,))


def _show_alone(card: Card, path: str, *, is_inside: bool) -> Card:
    if is_inside:
        return replace(card, names=tuple(name.removeprefix(f"{path}.") for name in card.names))
    names = card.names[:1] or (card.operation or card.kind,)
    return Card(card.key, "outside", names=names, forward_at=card.forward_at, backward_at=card.backward_at)
