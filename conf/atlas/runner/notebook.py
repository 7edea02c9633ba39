"""What an example's notebook has beyond what sphinx-gallery makes of the script; its first cell a Markdown page's has too.

Its first cell installs what the example imports, where that is not installed, and says whether a GPU is needed. Both are
read from the script itself, so that no example can import what its notebook lacks. Its text has Markdown in place of the
directives of this site, which sphinx-gallery's converter leaves as they are.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import textwrap
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path

from atlas.toolbox import read_imports

from . import halves

_GPU = (
    "# Its last part needs a GPU with CUDA, and ends without one. In Colab, before you run the first cell:\n"
    "# Runtime > Change runtime type > T4 GPU.\n"
)


def first_cell(script: Path) -> str:
    """The cell for the notebook of ``script``; a script that cannot be read gets PyTorch alone, and fails by itself."""
    try:
        return first_cell_of(script.read_text(encoding="utf-8"))
    except ValueError:
        return first_cell_of("")


def first_cell_of(code: str) -> str:
    """The cell for a notebook with this code."""
    release = ".".join(version("torch").split(".")[:2])
    try:
        read_imports, needs_gpu = packages(code), bool(halves.marks(code))
    except SyntaxError:
        read_imports, needs_gpu = [], False
    wanted = [f'"torch>={release}"', *(package for package in read_imports if package != "torch")]
    return (
        f"# What this notebook needs. Its page was built with PyTorch {release}; an older one may answer differently.\n"
        f"{_GPU if needs_gpu else ''}"
        f"%pip install --quiet {' '.join(wanted)}"
    )


def packages(code: str) -> list[str]:
    """The packages on PyPI that hold the modules which ``code`` imports, by name; Python's own are left out.

    :raises SyntaxError: if the code is no Python.

    >>> packages("import math, torch\\nfrom sklearn import datasets")
    ['scikit-learn', 'torch']
    """
    modules = read_imports(ast.parse(code)) - {"."}
    found = {_package(module) for module in modules - sys.stdlib_module_names}
    return sorted(re.sub(r"[-_.]+", "-", package).lower() for package in found)


def _package(module: str) -> str:
    """The package that holds a module. Most are called like their module."""
    try:
        return distribution(module).name
    except PackageNotFoundError:
        return distributions().get(module, [module])[0]


#: A directive that belongs to the page alone, with what is indented below it.
_OF_THE_PAGE = re.compile(r"^\.\. index::.*\n(?:(?:[ \t].*)?\n)*", re.MULTILINE)
_BOX = re.compile(r"^\.\. in-short::[ \t]*\n((?:(?:[ \t].*)?(?:\n|$))+)", re.MULTILINE)
_CHANGED = re.compile(
    r"^\.\. torch-changed::[ \t]*(\S+)[ \t]*\n(?:[ \t]+:probe:.*\n)?((?:(?:[ \t].*)?(?:\n|$))+)", re.MULTILINE
)
_MEASURED = re.compile(r"^\.\. how-measured::[ \t]*(.+(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_TO_TRY = re.compile(r"^\.\. memory-cells::[ \t]*$", re.MULTILINE)
_SOLUTION = re.compile(r"^\.\. solution::[ \t]*$", re.MULTILINE)
_REFERENCE = re.compile(r":doc:`([^`<]+?)\s*(?:<[^`>]*>)?`")
#: sphinx-gallery leaves the underscore of a link.
_LINK = re.compile(r"(\]\([^)\s]+\))_")


def without_directives(markdown: str) -> str:
    """The text of a cell as a notebook can show it.

    >>> print(without_directives(".. in-short::\\n\\n   Call ``backward()``.\\n\\nText, see [here](a.html)_.\\n"))
    > **In short**
    >
    > Call ``backward()``.
    <BLANKLINE>
    Text, see [here](a.html).
    <BLANKLINE>
    """
    text = _OF_THE_PAGE.sub("", markdown)
    text = _BOX.sub(lambda found: _quote(f"**In short**\n\n{textwrap.dedent(found[1]).strip()}") + "\n\n", text)
    text = _CHANGED.sub(lambda found: f"{_quote(_of_a_change(found[1], found[2]))}\n\n", text)
    text = _MEASURED.sub(lambda found: f"*How this was measured:* {' '.join(found[1].split())}", text)
    text = _TO_TRY.sub("*The buttons are on this page of the site.*", text)
    text = halves.ON_PAGE.sub("*From here on, the code needs a GPU.*", text)
    text = _REFERENCE.sub(lambda found: f"*{' '.join(found[1].split())}*", _SOLUTION.sub("**Solution**", text))
    return _LINK.sub(r"\1", text)


def _of_a_change(release: str, said: str) -> str:
    """What a page says of another version. The values that it shows are on the page: a notebook has its own."""
    return f"**Changed in PyTorch {release}:** {textwrap.dedent(said).strip()}"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """For each module that is installed, the packages that hold it. To look takes as long as a short example."""
    return packages_distributions()
