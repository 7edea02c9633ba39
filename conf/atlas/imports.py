"""What code imports, read from the code itself."""

from __future__ import annotations

import ast


def imported(tree: ast.AST) -> set[str]:
    """The first words of the modules that the code imports anywhere; ``.`` for what it imports from beside itself.

    >>> sorted(imported(ast.parse("import torch.nn, math; from . import beside; from numpy.linalg import norm")))
    ['.', 'math', 'numpy', 'torch']
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level or node.module is None else node.module.partition(".")[0])
    return found
