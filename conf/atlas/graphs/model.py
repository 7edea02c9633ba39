"""The backward graph as plain data: cards joined by edges, in the order of the forward pass.

Nothing here holds a tensor or a node, so a graph can be kept, compared and drawn after the script is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["leaf", "function", "accumulate", "constant", "folded"]


@dataclass(frozen=True, slots=True)
class Card:
    """One box of the drawing.

    ``kind`` is ``leaf`` for a tensor that no node computed, ``function`` for a node, ``accumulate`` for an AccumulateGrad
    node that the page asked to see, ``constant`` for an input that needs no gradient (a None edge), ``folded`` for
    operations drawn as one.
    """

    key: int
    kind: Kind
    operation: str = ""
    """The node's own name (``MulBackward0``), or what a folded card stands for."""
    names: tuple[str, ...] = ()
    """The script's variables for the node's outputs, or for the leaf."""
    is_root: bool = False
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    value: float | complex | None = None
    """The value, known when a variable names the tensor and it has one element."""
    gradient: float | complex | None = None
    """``.grad`` where it is kept and has one element."""
    gradient_shape: tuple[int, ...] | None = None
    terms: tuple[float, ...] = ()
    """The contributions that add up to ``gradient`` where several paths meet."""
    saved: tuple[str, ...] = ()
    """What the node keeps for backward: ``self (3×4)``, or ``freed``."""
    recorded_as: int | None = None
    """The number that autograd gave the node: the line of the script that recorded it can be told from it."""
    forward_at: int = 0
    """Its place in the order in which forward recorded the nodes."""
    backward_at: int = 0
    """Its place in the order in which the engine calls the nodes in backward."""

    @property
    def is_scalar(self) -> bool:
        """Whether the tensor has no dimension, so that a number can stand for it.

        >>> Card(0, "leaf", shape=()).is_scalar, Card(0, "leaf", shape=(2, 3)).is_scalar
        (True, False)
        """
        return self.shape == ()


@dataclass(frozen=True, slots=True)
class Edge:
    """Data flows from card ``tail`` to card ``head``; the gradient flows back along the same edge."""

    tail: int
    head: int
    input: int = 0
    """Which input of ``head`` this is."""
    output: int = 0
    """Which output of ``tail`` this is: the number in ``next_functions``."""
    derivative: float | None = None
    """The local derivative, known for scalars only."""

    def passes(self, gradient: float | None) -> float | None:
        """What reaches ``tail`` when ``gradient`` has arrived at ``head``; None where one of the two is not known.

        >>> Edge(0, 1, derivative=3.0).passes(2.0)
        6.0
        """
        return None if gradient is None or self.derivative is None else gradient * self.derivative


@dataclass(frozen=True, slots=True)
class Graph:
    """Cards in topological order, inputs before results, and the edges between them."""

    cards: tuple[Card, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0
    """How many nodes are not drawn because the graph is too large."""
