"""What code needs of this site: its own modules, or files of its sources. Such code can run nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = __package__.partition(".")[0]


def own_needs(code: str, folder: Path) -> list[str]:
    """What the code imports of our own, and which files beside the page it names, by these names.

    :param folder: of the page, in which the build runs its code.
    :raises SyntaxError: if the code is no Python.

    >>> own_needs("from atlas import graphs", Path("."))
    ['atlas']
    """
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {PACKAGE for alias in node.names if alias.name.partition(".")[0] == PACKAGE}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {PACKAGE} & {str(node.module).partition(".")[0]}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_file(folder, node.value):
            found.add(node.value)
    return sorted(found)


def _is_file(folder: Path, words: str) -> bool:
    try:
        return (folder / words).is_file()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False
