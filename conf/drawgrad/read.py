"""Read the graph behind a tensor: ``grad_fn`` and ``next_functions`` become cards and edges.

Reading must not change what the script sees: see ``nodes``. No ``.grad`` is touched that would warn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import torch

from . import nodes
from .model import CHANGEABLE, READABLE, Card, Edge, Graph
from .program import make_program

_MAX_ITEMS_OF_A_CONTAINER = 50
#: Of the reader's graphs that are as large, only a part is read.
_MOST = 10_000


class GraphError(ValueError):
    """The tensor that was asked for has no graph, or is no tensor."""


def read_graph(
    roots: Mapping[str, Any], namespace: Mapping[str, Any], *, accumulate: bool = False, own: bool = False
) -> Graph:
    """Read the backward graph of ``roots``.

    :param roots: the tensors whose graph is wanted, by the name the script gives them.
    :param namespace: the script's variables, which name the cards. Tensors in lists, tuples and dicts, and the parameters of
        modules, are found too.
    :param accumulate: give AccumulateGrad nodes cards of their own instead of drawing them as their leaf.
    :param own: for a figure of the reader's own, read the norms of gradients too, and the bytes of what is saved; of a graph of
        10,000 nodes only what is nearest to the roots; and make no program for more than 200.
    :raises GraphError: if a root is no tensor, or is a tensor without a graph.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> graph = read_graph({"y": y}, {"x": x, "y": y})
    >>> [(card.kind, card.names, card.value) for card in graph.cards]
    [('leaf', ('x',), 3.0), ('function', ('y',), 9.0)]
    >>> [edge.derivative for edge in graph.edges]
    [3.0, 3.0]
    """
    starts = [_find_start(name, tensor) for name, tensor in roots.items()]
    outputs, leaves = _find_named({**namespace, **roots})
    found = len(_find_nearest(starts, _MOST)) if own else 0
    near = _find_nearest(starts, READABLE) if found == _MOST else None
    order = _order_nodes(starts, near)
    keys = {node: position for position, node in enumerate(order)}
    # AccumulateGrad nodes, which forward does not run, come last
    forward = {node: at for at, node in enumerate(sorted(order, key=lambda node: node._sequence_nr()))}
    backward = {node: at for at, node in enumerate(nodes.order_backward(starts, order))}
    cards: dict[int, Card] = {}
    edges: list[Edge] = []
    fresh = count(len(order))
    for node in order:
        key, is_root = keys[node], node in starts
        if nodes.is_accumulate(node):
            tensor, names = node.variable, tuple(leaves.get(id(node.variable), {}))
            known = {"backward_at": backward[node], "kept": nodes.measure_memory(tensor) if own else ()}
            facts = _describe_shape(tensor) | _read_numbers(tensor, own) | known
            cards[key] = leaf = Card(key, "leaf", "", names, is_root, **facts)
            if accumulate:
                facts = _describe_shape(tensor) | {"backward_at": backward[node]}
                cards[key] = Card(key, "accumulate", "AccumulateGrad", **facts)
                shown = next(fresh)
                cards[shown] = replace(leaf, key=shown)
                edges.append(Edge(shown, key))
        else:
            card = _make_function(key, node, outputs, is_root, own)
            cards[key] = replace(card, forward_at=forward[node], backward_at=backward[node])
            derivatives = nodes.read_derivatives(node)
            for position, (source, output) in enumerate(node.next_functions):
                if source is None:  # an input that needs no gradient has no node
                    tail = next(fresh)
                    cards[tail] = Card(tail, "constant", operation="constant")
                    edges.append(Edge(tail, key, position))
                elif source in keys:
                    edges.append(Edge(keys[source], key, position, output, derivatives.get(position)))
    with_terms = list(_add_terms(_put_inputs_first(cards, edges), edges))
    program = None if found > nodes.MOST_NODES else make_program(order, keys, cards, edges, outputs)
    return Graph(tuple(reversed(with_terms)), tuple(edges), found - len(order) if near else 0, program)


def _find_start(name: str, tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise GraphError(f"{name!r} is a {type(tensor).__name__}, not a tensor")
    if not tensor.requires_grad:
        raise GraphError(f"{name!r} has no graph: it does not require a gradient, so no operation on it was recorded")
    return torch.autograd.graph.get_gradient_edge(tensor).node


def _order_nodes(starts: list[Any], near: set[Any] | None) -> list[Any]:
    """All nodes, or those ``near``, each after those that feed it. Iterative: graphs are deeper than Python's stack."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(node, False) for node in reversed(starts)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            sources = [source for source, _ in node.next_functions if source is not None and source not in seen]
            stack.extend((source, False) for source in reversed(sources) if near is None or source in near)
    return order


def _find_nearest(starts: list[Any], most: int) -> set[Any]:
    """``most`` nodes, those that are the fewest edges away, or all.

    One that Python has met keeps its object, and PyTorch deletes a chain of such nodes recursively: after a walk along 50,000
    the process ends with a segmentation fault.
    """
    near = dict.fromkeys(starts)
    queue = deque(near)
    while queue:
        for source, _ in queue.popleft().next_functions:
            if source is not None and source not in near:
                if len(near) >= most:
                    return {*near}
                near[source] = None
                queue.append(source)
    return {*near}


# -- Names ----------------------------------------------------------------------------------------


def _find_named(namespace: Mapping[str, Any]) -> tuple[dict[Any, dict[str, Any]], dict[int, dict[str, Any]]]:
    """Every tensor that the script can name: by (node, output number) and, for leaves, by identity.

    A place in a container (``layers[0]``) names a tensor only if no variable does.
    """
    outputs: dict[Any, dict[str, Any]] = {}
    leaves: dict[int, dict[str, Any]] = {}
    for name, tensor in sorted(_find_tensors(namespace), key=lambda found: not found[0].isidentifier()):
        try:
            node = tensor.grad_fn
        except RuntimeError:  # a view of a function with several outputs, after its base was changed in place
            continue
        of, key = (leaves, id(tensor)) if node is None else (outputs, (node, tensor.output_nr))
        names = of.setdefault(key, {})
        if name.isidentifier() or not names:
            names[name] = tensor
    return outputs, leaves


def _find_tensors(namespace: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        items = value.named_parameters(name) if isinstance(value, torch.nn.Module) else list_items(name, value)
        yield from ((found, item) for found, item in items if isinstance(item, torch.Tensor))


def list_items(name: str, value: Any) -> list[tuple[str, Any]]:
    """``value``, or what is in a list, tuple or dict, by what the script would write for it."""
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{index}]", item) for index, item in enumerate(value[:_MAX_ITEMS_OF_A_CONTAINER])]
    if isinstance(value, dict):
        items = list(value.items())[:_MAX_ITEMS_OF_A_CONTAINER]
        return [(f"{name}[{key!r}]", item) for key, item in items if not isinstance(key, torch.Tensor)]
    return [(name, value)]


# -- Cards ----------------------------------------------------------------------------------------


def _make_function(key: int, node: Any, outputs: Mapping[Any, Mapping[str, Any]], is_root: bool, own: bool) -> Card:
    metadata = node._input_metadata
    named = [item for number in range(len(metadata)) for item in outputs.get((node, number), {}).items()]
    names = tuple(name for name, _ in named)
    kept = nodes.measure_saved(node) if own else ()
    facts = {"saved": nodes.describe_saved(node, in_bytes=own), "recorded_as": node._sequence_nr(), "kept": kept}
    if len(metadata) == 1:
        facts |= _describe_shape(metadata[0])
        if named:
            facts |= _read_numbers(next((tensor for _, tensor in named if tensor.retains_grad), named[0][1]), own)
    return Card(key, "function", nodes.name_operation(node), names, is_root, **facts)


def _describe_shape(of: Any) -> dict[str, Any]:
    """What a card says of the shape and the type of a tensor, or of what a node notes of its result."""
    return {"shape": tuple(of.shape), "dtype": str(of.dtype).removeprefix("torch.")}


def _read_numbers(tensor: torch.Tensor, own: bool) -> dict[str, Any]:
    """What a card says of a tensor's numbers, and of its gradient's where it is kept."""
    found = {"value": _read_scalar(tensor), "numbers": _read_vector(tensor)}
    gradient = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    if gradient is not None:
        found |= {"gradient": _read_scalar(gradient), "gradient_numbers": _read_vector(gradient)}
        found["gradient_shape"] = tuple(gradient.shape)
        found["gradient_norm"] = nodes.measure_norm(gradient) if own else None
    return found


def _read_scalar(tensor: torch.Tensor) -> float | complex | None:
    try:
        return None if tensor.dim() or tensor.is_sparse else tensor.detach().item()
    except RuntimeError:  # it has no number: on the device meta, or what a compiler traces
        return None


def _read_vector(tensor: torch.Tensor) -> tuple[float, ...]:
    """The values of a vector that is small enough to be written on a card."""
    is_small = tensor.dim() and tensor.numel() <= CHANGEABLE and tensor.dtype.is_floating_point
    found = nodes.read_operand(tensor) if is_small else None
    return found.numbers if found else ()


# -- Sums over paths ------------------------------------------------------------------------------


def _put_inputs_first(cards: Mapping[int, Card], edges: list[Edge]) -> list[Card]:
    """Cards in forward order; constants and shown leaves, numbered last, go just before what they feed."""
    feeds = {edge.tail: edge.head for edge in edges}
    accumulates = {key for key, card in cards.items() if card.kind == "accumulate"}

    def find_place(card: Card) -> tuple[float, int]:
        is_added = card.kind == "constant" or (card.kind == "leaf" and feeds.get(card.key) in accumulates)
        return feeds[card.key] - 0.5 if is_added else card.key, card.key

    return sorted(cards.values(), key=find_place)


def _add_terms(cards: list[Card], edges: list[Edge]) -> Iterator[Card]:
    """Add the contribution of each path where several meet, if they do add up to the gradient that the tensor holds."""
    called_at = {card.key: card.backward_at for card in cards}
    leaving: dict[int, list[Edge]] = {card.key: [] for card in cards}
    for edge in sorted(edges, key=lambda edge: called_at[edge.head]):  # as they arrive, and as the play has it
        leaving[edge.tail].append(edge)
    arrived: dict[int, float | None] = {}
    for card in reversed(cards):
        paths = [edge.pass_back(arrived[edge.head]) for edge in leaving[card.key]]
        gradient = None if isinstance(card.gradient, complex) else card.gradient
        start = (1.0 if card.gradient is None else gradient) if card.is_root and not paths else 0.0
        is_whole = start is not None and None not in paths
        arrived[card.key] = start + sum(paths) if is_whole else None
        meets = is_whole and len(paths) > 1 and gradient is not None
        if meets and math.isclose(sum(paths), gradient, rel_tol=1e-4, abs_tol=1e-6):
            card = replace(card, terms=tuple(paths))
        yield card
