"""Backward graphs as data and as pictures, without Sphinx.

``model`` is the data, ``read`` fills it from ``grad_fn``, ``fold`` makes large graphs small, ``draw`` turns it into SVG,
``describe`` into the rows of a table. ``order`` and ``steps`` make a play of it, ``rules`` say what backward computes, and
``figure_data`` is all that a figure can be asked. ``operands`` reads with what numbers nodes computed,
``program`` makes of them what computes a graph again, and ``live_data`` is what a figure needs whose leaves can be changed.
"""

from .describe import Row, describe
from .draw import draw
from .figure_data import figure_data
from .fold import fold
from .model import Card, Edge, Graph
from .read import GraphError, read

__all__ = ["Card", "Edge", "Graph", "GraphError", "Row", "describe", "draw", "figure_data", "fold", "read"]
