"""The first cell of an example's notebook: it installs what the example imports, where that is not installed.

The list is read from the script itself, so that no example can import what its notebook lacks.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions, version
from pathlib import Path


def first_cell(script: Path) -> str:
    """The cell for the notebook of ``script``; a script that cannot be read gets PyTorch alone, and fails by itself."""
    release = ".".join(version("torch").split(".")[:2])
    try:
        imported = packages(script.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        imported = []
    wanted = [f'"torch>={release}"', *(package for package in imported if package != "torch")]
    return (
        f"# What this notebook needs. Its page was built with PyTorch {release}; an older one may answer differently.\n"
        f"%pip install --quiet {' '.join(wanted)}"
    )


def packages(code: str) -> list[str]:
    """The packages on PyPI that hold the modules which ``code`` imports, by name; Python's own are left out.

    :raises SyntaxError: if the code is no Python.

    >>> packages("import math, torch\\nfrom sklearn import datasets")
    ['scikit-learn', 'torch']
    """
    modules = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module.partition(".")[0])
    known = distributions()
    found = {known.get(module, [module])[0] for module in modules - sys.stdlib_module_names}
    return sorted(re.sub(r"[-_.]+", "-", package).lower() for package in found)


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """For each module that is installed, the packages that hold it. To look takes as long as a short example."""
    return packages_distributions()
