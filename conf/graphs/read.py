"""Read the graph behind a tensor: ``grad_fn`` and ``next_functions`` become cards and edges.

Reading must not change what the script sees. Nothing is unpacked that a saved-tensor hook packed, no node of a custom
Function is called (its backward may print, count or raise), no ``.grad`` is touched that would warn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import torch

from graphs.model import CHANGEABLE, Card, Edge, Graph
from graphs.numbers import format_shape

from .operands import operand
from .order import engine_order, forward_order
from .program import program_of

# Local derivatives are read before backward frees what the nodes saved, and drawn after it. They are remembered on the
# node itself, so that they live exactly as long as it does and the drawing keeps no graph alive.
_REMEMBERED = "atlas.local_derivatives"

_MAX_ITEMS_OF_A_CONTAINER = 50


class GraphError(ValueError):
    """The tensor that was asked for has no graph, or is no tensor."""


def read_graph(roots: Mapping[str, Any], namespace: Mapping[str, Any], *, accumulate: bool = False) -> Graph:
    """Read the backward graph of ``roots``.

    :param roots: the tensors whose graph is wanted, by the name the script gives them.
    :param namespace: the script's variables, which name the cards. Tensors in lists, tuples and dicts, and the parameters of
        modules, are found too.
    :param accumulate: give AccumulateGrad nodes cards of their own instead of drawing them as their leaf.
    :raises GraphError: if a root is no tensor, or is a tensor without a graph.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> graph = read_graph({"y": y}, {"x": x, "y": y})
    >>> [(card.kind, card.names, card.value) for card in graph.cards]
    [('leaf', ('x',), 3.0), ('function', ('y',), 9.0)]
    >>> [edge.derivative for edge in graph.edges]
    [3.0, 3.0]
    """
    starts = [_start(name, tensor) for name, tensor in roots.items()]
    outputs, leaves = _named({**namespace, **roots})
    order = _forward_order(starts)
    keys = {node: position for position, node in enumerate(order)}
    forward = {node: position for position, node in enumerate(forward_order(order))}
    backward = {node: position for position, node in enumerate(engine_order(starts, order))}
    cards: dict[int, Card] = {}
    edges: list[Edge] = []
    fresh = count(len(order))
    for node in order:
        key, is_root = keys[node], node in starts
        if _is_accumulate(node):
            leaf = _leaf_card(key, node.variable, leaves, is_root=is_root)
            cards[key] = leaf = replace(leaf, backward_at=backward[node])
            if accumulate:
                shown = next(fresh)
                cards |= {shown: replace(leaf, key=shown), key: _accumulate_card(leaf)}
                edges.append(Edge(shown, key))
        else:
            card = _function_card(key, node, outputs, is_root=is_root)
            cards[key] = replace(card, forward_at=forward[node], backward_at=backward[node])
            entering = list(_edges_into(node, keys, fresh))
            constants = [edge.tail for edge in entering if edge.tail >= len(order)]
            cards |= {tail: Card(tail, "constant", operation="constant") for tail in constants}
            edges += entering
    ordered = _inputs_first(cards, edges)
    with_terms = list(_with_terms(ordered, edges))
    program = program_of(order, keys, cards, edges, outputs)
    return Graph(tuple(reversed(with_terms)), tuple(edges), program=program)


def _start(name: str, tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise GraphError(f"{name!r} is a {type(tensor).__name__}, not a tensor")
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    if not tensor.requires_grad:
        raise GraphError(f"{name!r} has no graph: it does not require a gradient, so no operation on it was recorded")
    return torch.autograd.graph.get_gradient_edge(tensor).node


def _forward_order(starts: list[Any]) -> list[Any]:
    """All nodes, each after the nodes that feed it. Iterative: graphs are deeper than Python's stack."""
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
            stack.extend((source, False) for source in reversed(sources))
    return order


def _is_accumulate(node: Any) -> bool:
    return node.__class__.__name__ == "AccumulateGrad"


def _is_custom(node: Any) -> bool:
    return isinstance(node, torch.autograd.function.BackwardCFunction)


def _operation(node: Any) -> str:
    """The node's name without its C++ namespace; for a custom Function, the name of its class with ``Backward``."""
    return (type(node).__name__ if _is_custom(node) else node.name()).rpartition("::")[2]


def _edges_into(node: Any, keys: Mapping[Any, int], fresh: Iterator[int]) -> Iterator[Edge]:
    """An edge for each input of ``node``. One that needs no gradient has no node: the next key of ``fresh`` stands for it."""
    derivatives = _local_derivatives(node)
    for position, (source, output) in enumerate(node.next_functions):
        if source is None:
            yield Edge(next(fresh), keys[node], position)
        else:
            yield Edge(keys[source], keys[node], position, output, derivatives.get(position))


# --- names ---------------------------------------------------------------------------------------


def _named(namespace: Mapping[str, Any]) -> tuple[dict[Any, dict[str, Any]], dict[int, dict[str, Any]]]:
    """Every tensor that the script can name: by (node, output number) and, for leaves, by identity.

    A place in a container (``layers[0]``) names a tensor only if no variable does.
    """
    outputs: dict[Any, dict[str, Any]] = {}
    leaves: dict[int, dict[str, Any]] = {}
    for name, tensor in sorted(_tensors(namespace), key=lambda found: not found[0].isidentifier()):
        try:
            node = tensor.grad_fn
        except RuntimeError:  # a view of a function with several outputs, after its base was changed in place
            continue
        if node is None:
            names = leaves.setdefault(id(tensor), {})
        else:
            names = outputs.setdefault((node, tensor.output_nr), {})
        if name.isidentifier() or not names:
            names[name] = tensor
    return outputs, leaves


def _tensors(namespace: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, torch.nn.Module):
            for parameter, tensor in value.named_parameters():
                yield f"{name}.{parameter}", tensor
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value[:_MAX_ITEMS_OF_A_CONTAINER]):
                if isinstance(item, torch.Tensor):
                    yield f"{name}[{index}]", item
        elif isinstance(value, dict):
            for index, (key, item) in enumerate(value.items()):
                if index < _MAX_ITEMS_OF_A_CONTAINER and isinstance(item, torch.Tensor):
                    yield f"{name}[{key!r}]", item


# --- cards ---------------------------------------------------------------------------------------


def _leaf_card(key: int, leaf: torch.Tensor, leaves: Mapping[int, Mapping[str, Any]], *, is_root: bool) -> Card:
    names = tuple(leaves.get(id(leaf), {}))
    return Card(
        key,
        "leaf",
        names=names,
        is_root=is_root,
        shape=tuple(leaf.shape),
        dtype=_dtype(leaf.dtype),
        value=_number(leaf),
        numbers=_numbers(leaf),
        **_gradient(leaf),
    )


def _accumulate_card(leaf: Card) -> Card:
    """The AccumulateGrad node of a leaf, which has the leaf's key."""
    return Card(
        leaf.key,
        "accumulate",
        operation="AccumulateGrad",
        shape=leaf.shape,
        dtype=leaf.dtype,
        backward_at=leaf.backward_at,
    )


def _function_card(key: int, node: Any, outputs: Mapping[Any, Mapping[str, Any]], *, is_root: bool) -> Card:
    metadata = node._input_metadata
    named = [item for number in range(len(metadata)) for item in outputs.get((node, number), {}).items()]
    card = Card(
        key,
        "function",
        operation=_operation(node),
        names=tuple(name for name, _ in named),
        is_root=is_root,
        shape=tuple(metadata[0].shape) if len(metadata) == 1 else None,
        dtype=_dtype(metadata[0].dtype) if len(metadata) == 1 else "",
        saved=_saved(node),
        recorded_as=node._sequence_nr(),
    )
    if len(metadata) != 1 or not named:
        return card
    tensor = next((tensor for _, tensor in named if tensor.retains_grad), named[0][1])
    gradient = _gradient(tensor) if tensor.retains_grad else {}
    return replace(card, value=_number(tensor), numbers=_numbers(tensor), **gradient)


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _number(tensor: torch.Tensor) -> float | complex | None:
    if tensor.dim() or tensor.is_meta or tensor.is_sparse:
        return None
    return tensor.detach().item()


def _numbers(tensor: torch.Tensor) -> tuple[float, ...]:
    """The values of a vector that is small enough to be written on a card."""
    if not tensor.dim() or tensor.numel() > CHANGEABLE or not tensor.dtype.is_floating_point:
        return ()
    found = operand(tensor)
    return found.numbers if found else ()


def _gradient(tensor: torch.Tensor) -> dict[str, Any]:
    gradient = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    if gradient is None:
        return {}
    numbers = {"gradient": _number(gradient), "gradient_numbers": _numbers(gradient)}
    return numbers | {"gradient_shape": tuple(gradient.shape)}


# --- what a node keeps ---------------------------------------------------------------------------


def _raw_saved(node: Any) -> Iterator[tuple[str, Any]]:
    """The node's saved tensors, still packed: (attribute's name, SavedTensor)."""
    for attribute in dir(node):
        if not attribute.startswith("_raw_saved_"):
            continue
        name = attribute.removeprefix("_raw_saved_")
        try:
            saved = getattr(node, attribute)
        except RuntimeError:  # a list of saved tensors raises once it is freed
            yield name, None
            continue
        if isinstance(saved, tuple):
            for index, item in enumerate(saved):
                yield f"{name}[{index}]", item
        else:
            yield name, saved


def _is_packed_by_a_hook(saved: Any) -> bool:
    # A torch without this attribute cannot tell: treat the tensor as packed, and leave it alone.
    return getattr(saved, "unpack_hook", True) is not None


def _saved(node: Any) -> tuple[str, ...]:
    texts = []
    for name, saved in _raw_saved(node):
        if saved is None:
            return ("freed",)
        try:
            if _is_packed_by_a_hook(saved):
                texts.append(f"{name} (packed by a hook)")
            elif saved.data is not None:
                texts.append(f"{name} ({format_shape(saved.data.shape)})")
            else:
                # raises if it is freed; else nothing was saved here
                getattr(node, f"_saved_{name.partition('[')[0]}", None)
        except RuntimeError:
            return ("freed",)
    return tuple(texts)


# --- local derivatives ---------------------------------------------------------------------------


def _local_derivatives(node: Any) -> dict[int, float]:
    """What the node returns for an incoming 1, by input number. Empty unless everything about it is a real scalar."""
    remembered = node.metadata.get(_REMEMBERED)
    if remembered is not None:
        return remembered
    if not _may_be_called(node):
        return {}
    (metadata,) = node._input_metadata
    try:
        with torch.no_grad():
            results = node(torch.ones((), dtype=metadata.dtype, device=metadata.device))
    except RuntimeError:  # its saved tensors are freed
        return {}
    results = results if isinstance(results, tuple) else (results,)
    derivatives = {
        position: float(result)
        for position, result in enumerate(results)
        if isinstance(result, torch.Tensor) and result.dim() == 0 and not result.is_complex()
    }
    node.metadata[_REMEMBERED] = derivatives
    return derivatives


def _may_be_called(node: Any) -> bool:
    metadata = node._input_metadata
    if _is_custom(node) or len(metadata) != 1 or tuple(metadata[0].shape) != ():
        return False
    if (
        not metadata[0].dtype.is_floating_point
        or metadata[0].device.type == "meta"
        or _operation(node) == "CopySlices"
    ):
        return False
    for _, saved in _raw_saved(node):
        if saved is None or _is_packed_by_a_hook(saved):
            return False
        try:
            tensor = saved.data
        except RuntimeError:
            return False
        if tensor is not None and tensor.is_meta:
            return False
    return True


# --- sums over paths -----------------------------------------------------------------------------


def _inputs_first(cards: Mapping[int, Card], edges: list[Edge]) -> list[Card]:
    """Cards in forward order; constants and shown leaves, numbered last, go just before what they feed."""
    place: dict[int, float] = {}
    feeds = {edge.tail: edge.head for edge in edges}
    for key, card in cards.items():
        is_added = card.kind == "constant" or _is_shown_leaf(key, cards, feeds)
        place[key] = feeds[key] - 0.5 if is_added else key
    return sorted(cards.values(), key=lambda card: (place[card.key], card.key))


def _is_shown_leaf(key: int, cards: Mapping[int, Card], feeds: Mapping[int, int]) -> bool:
    return cards[key].kind == "leaf" and key in feeds and cards[feeds[key]].kind == "accumulate"


def _with_terms(cards: list[Card], edges: list[Edge]) -> Iterator[Card]:
    """Add the contribution of each path where several meet, if they do add up to the gradient that the tensor holds."""
    called_at = {card.key: card.backward_at for card in cards}
    leaving: dict[int, list[Edge]] = {}
    for edge in sorted(
        edges, key=lambda edge: called_at[edge.head]
    ):  # as they arrive, and as the play of steps.py says
        leaving.setdefault(edge.tail, []).append(edge)
    arrived: dict[int, float | None] = {}
    for card in reversed(cards):
        paths = [edge.passes(arrived[edge.head]) for edge in leaving.get(card.key, [])]
        start = _real(card.gradient if card.gradient is not None else 1.0) if card.is_root and not paths else 0.0
        known = [path for path in paths if path is not None]
        whole = start is not None and len(known) == len(paths)
        arrived[card.key] = start + sum(known) if whole else None
        gradient = _real(card.gradient)
        meets = whole and len(known) > 1 and gradient is not None
        if meets and math.isclose(sum(known), gradient, rel_tol=1e-4, abs_tol=1e-6):
            card = replace(card, terms=tuple(known))
        yield card


def _real(number: float | complex | None) -> float | None:
    return None if number is None or isinstance(number, complex) else float(number)
