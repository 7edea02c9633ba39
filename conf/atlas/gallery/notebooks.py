"""The notebook of an example: its first cell installs what the example imports, and its text is Markdown.

What the first cell installs is read from the script itself, so that no example can import what its notebook lacks. Pandoc
converts the text of all cells at once. A directive that it does not know, as one of this site, becomes a ``<div>`` with the
directive's name; of each, whatever its name, a quotation is made that begins with that name.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import packages_distributions, version
from typing import Any

from atlas.toolbox import read_imports

from .scripts import find_marks

_GPU = (
    "# Its last part needs a GPU with CUDA, and ends without one. In Colab, before you run the first cell:\n"
    "# Runtime > Change runtime type > T4 GPU.\n"
)
#: What pandoc makes of a directive that it does not know.
_BOX = re.compile(r'<div class="([\w-]+)"[^>]*>\n((?:(?!</?div).)*?)</div>', re.DOTALL)
#: Boxes whose name says too little. Of any other the name itself is said.
_SAID = {
    "how-measured": "How this was measured",
    "memory-cells": "The buttons are on this page of the site",
    "needs-a-gpu": "From here on, the code needs a GPU",
    "torch-changed": "Changed in PyTorch",
}
#: A role with words of its own: a link of the site, of which the words are kept.
_LINK = re.compile(r":(?:doc|ref|any|term):`([^`<]+?)\s*<[^`>]*>`")
_NEXT_CELL = "the-next-cell-begins-here"
_MARKDOWN = "gfm-tex_math_gfm+tex_math_dollars"


def fill_notebook(script: str, cells: list[dict[str, Any]], blocks: Sequence[Any], raising: set[str]) -> None:
    """Write the cells of the notebook of a script, whose text is ``script``.

    :param raising: the code of cells that raise: Jupyter runs the cells after them all the same.
    """
    texts = iter(convert_texts([block.content for block in blocks if block.type == "text"]))
    cells.append(_make_code_cell(make_first_cell(script)))
    for block in blocks:
        if block.type == "code" and not block.content.strip():  # all of it is hidden
            continue
        if block.type == "code":
            tags = {"tags": ["raises-exception"]} if block.content in raising else {}
            cells.append(_make_code_cell(block.content.strip(), **tags))
        else:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": [next(texts)]})


def _make_code_cell(code: str, **metadata: Any) -> dict[str, Any]:
    facts = {"collapsed": False, **metadata}
    return {"cell_type": "code", "execution_count": None, "metadata": facts, "outputs": [], "source": [code]}


def convert_texts(texts: Iterable[str]) -> list[str]:
    r"""The text of a page's cells, which is reStructuredText, as Markdown.

    >>> print(convert_texts([".. in-short::\n\n   Call ``backward()``.\n\nSee :doc:`here <a>`."])[0])
    > **In short**
    >
    > Call `backward()`.
    <BLANKLINE>
    See *here*.
    """
    import pypandoc

    rst = f"\n\n{_NEXT_CELL}\n\n".join(texts).replace(".. parsed-literal::", "::")
    rst = _LINK.sub(r"*\1*", rst)
    markdown = pypandoc.convert_text(rst, _MARKDOWN, "rst", ["--wrap=preserve", "--quiet"], verify_format=False)
    while _BOX.search(markdown):  # those inside of others first
        markdown = _BOX.sub(_quote_box, markdown)
    return [text.strip() for text in markdown.split(f"{_NEXT_CELL}\n")]


def _quote_box(box: re.Match[str]) -> str:
    name, content = box[1], box[2].strip()
    if name == "index":  # it belongs to the page alone
        return ""
    said = _SAID.get(name, name.replace("-", " ").capitalize())
    lines = f"**{said}**\n\n{content}".strip().splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def make_first_cell(script: str) -> str:
    """The cell that installs what a script imports, where that is not installed, and says whether a GPU is needed."""
    release = ".".join(version("torch").split(".")[:2])
    wanted = [f'"torch>={release}"', *(package for package in list_packages(script) if package != "torch")]
    return (
        f"# What this notebook needs. Its page was built with PyTorch {release}; an older one may answer differently.\n"
        f"{_GPU if find_marks(script) else ''}"
        f"%pip install --quiet {' '.join(wanted)}"
    )


def list_packages(code: str) -> list[str]:
    """The packages on PyPI that hold the modules which ``code`` imports, by name; Python's own are left out.

    :raises SyntaxError: if the code is no Python.

    >>> list_packages("import math, torch\\nfrom sklearn import datasets")
    ['scikit-learn', 'torch']
    """
    modules = read_imports(ast.parse(code)) - {"."} - sys.stdlib_module_names
    found = {find_distributions().get(module, [module])[0] for module in modules}
    return sorted(re.sub(r"[-_.]+", "-", package).lower() for package in found)


#: For each module that is installed, the packages that hold it. To look takes as long as a short example.
find_distributions = functools.cache(packages_distributions)
