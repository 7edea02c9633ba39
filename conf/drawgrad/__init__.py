"""Backward graphs as data, in words and as drawings. Nothing here knows Sphinx or this site; torch is needed only to read.

``figure``    ``draw(loss)``: the graph of the reader's own tensors in a notebook, or in a file
``model``     the data, and its form in JSON; makes a large graph small
``read``      fills it from ``grad_fn``; ``nodes`` asks a node, ``program`` finds what computes the graph again
``modules``   finds the modules of a graph, which fold
``drawing``   the drawing, and a small picture
``describe``  the rows of a table, and how numbers are written
``play``      forward and backward, one node after the other, and all that a figure says
``player``    the same as HTML: sentences, notes and controls
``rules``     what each operation computes, forward and backward, also as JavaScript
"""

from importlib import import_module
from typing import Any

__all__ = ["Figure", "GraphError", "draw"]


def __getattr__(name: str) -> Any:
    """What a reader uses, loaded when it is asked for: it needs torch and Graphviz."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".figure", __name__), name)
