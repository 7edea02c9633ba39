"""Backward graphs as data and as pictures, without Sphinx.

``model``        the data; ``numbers``: how their numbers are written
``reading``      fills it from ``grad_fn``: cards, edges, order, and what computes the graph again
``drawing``      makes large graphs small, and turns them into SVG
``describe``     the rows of a table
``playing``      the steps of backward, what each computes, and what a figure needs whose leaves can be changed
``figure_data``  all that a figure can be asked
"""

from .describe import Row, describe
from .drawing.draw import draw
from .drawing.fold import fold
from .figure_data import figure_data
from .model import Card, Edge, Graph
from .reading.read import GraphError, read

__all__ = ["Card", "Edge", "Graph", "GraphError", "Row", "describe", "draw", "figure_data", "fold", "read"]
