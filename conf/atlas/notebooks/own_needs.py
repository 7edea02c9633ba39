"""What code needs of this site: its own modules, or files of its sources. Such code can run nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

from atlas.toolbox import read_imports

PACKAGE = __package__.partition(".")[0]


def own_needs(code: str, folder: Path) -> list[str]:
    """What the code imports of our own, and which files beside the page it names, by these names.

    :param folder: of the page, in which the build runs its code.
    :raises SyntaxError: if the code is no Python.

    >>> own_needs("from atlas import graphs", Path("."))
    ['atlas']
    """
    tree = ast.parse(code)
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return sorted({PACKAGE} & read_imports(tree) | {text for text in texts if _is_file(folder, text)})


def _is_file(folder: Path, words: str) -> bool:
    try:
        return (folder / words).is_file()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False
