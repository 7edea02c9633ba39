"""Examples that must not get through, each with one fault."""

from __future__ import annotations

from tiny.broken import Fault, example, head_of

LEAF = "leaf = torch.tensor(2.0, requires_grad=True)\n"
PLOT = "import matplotlib.pyplot as plt\n\nfigure, axes = plt.subplots()\n"

CLAIMS = [
    example(
        "assert_fails",
        "x = 1\n\n# %%\n# Text.\n\nassert x == 2, 'x is one'\n",
        "AssertionError: x is one",
        "assert x",
    ),
    example(
        "assert_of_two_lines",
        "x = 1\nassert x\n\n# %%\n# Text.\n\nif x == 2:\n    assert (\n        x\n    )\n",
        "this assert never ran",
        "    assert (",
    ),
]

GRAPHS = [
    example(
        "graph_misspelt",
        f"{LEAF}slope = leaf * leaf\n# graph: slpoe -- A slope\n",
        "no variable 'slpoe' at the end of this cell; did you mean 'slope'?",
        "# graph",
    ),
    example("graph_missing", "y = torch.tensor(1.0)\n# graph: qqq -- Nothing\n", "its tensors are: y", "# graph"),
    example("graph_of_nothing", "y = torch.tensor(1.0) * 2\n# graph: y -- No graph\n", "'y' has no graph", "# graph"),
    example("graph_of_a_number", "y = 2.0\n# graph: y -- No tensor\n", "'y' is a float, not a tensor", "# graph"),
    example("graph_untitled", f"{LEAF}y = leaf * 2\n# graph: y\n", "a graph needs a title", "# graph"),
    example("graph_option", f"{LEAF}y = leaf * 2\n# graph: y (save) -- T\n", "unknown option 'save'", "# graph"),
]

FIGURES = [
    example("figure_untitled", f"{PLOT}# figure: No line at all\n", "this figure has no title", "# figure"),
    example("figure_without_text", f'{PLOT}axes.set_title("Empty")\n', "a figure of this cell has no text", ""),
    example("text_without_figure", "# figure: A line\n", "a figure that this cell does not draw", "# figure"),
    example("text_is_empty", "# figure:\nprint(1)\n", "say what to see in the figure", "# figure"),
    example("predict_misspelt", "x = 1\n# predict: y -- What?\n", "NameError: name 'y' is not defined", "# predict"),
    example("predict_in_sight", "x = 1\n# predict: x -- What?\n", "put its cell below '.. solution::'", ""),
    example("varies_is_empty", "# varies:\nprint(1)\n", "say what varies, and why", "# varies"),
]

POWER = "def size(a=1):\n    return {{'a': {}}}\n\n# %%\n# .. calculator:: {}\n\nx = 1\n"
CALCULATORS = [
    example("power", POWER.format("a**2", "size"), "line 11: the browser cannot compute: a ** 2", "# .. calc"),
    example("statement", POWER.format("a}\n    {a", "size"), "line 12: the browser cannot compute: {a}", "# .. calc"),
    example("infinite", POWER.format("a / 0", "size"), "size() raises ZeroDivisionError", "# .. calc"),
    example("no_function", POWER.format("a", "sizes"), "there must be a function sizes", "# .. calc"),
]

OUTPUTS = [
    example("warning", 'import warnings\n\nwarnings.warn("look out")\n', "UserWarning: look out", "warnings.warn"),
    example(
        "deprecation",
        'import warnings\n\nwarnings.warn("old", DeprecationWarning)\n',
        "DeprecationWarning: old",
        "warnings.warn",
    ),
    example(
        "address",
        f"x = 1\n\n# %%\n# Text.\n\n{LEAF}print((leaf * 2).grad_fn)\n",
        "shows a memory address: 0x",
        "print",
    ),
    example("path", 'print("/home/someone/atlas")\n', "shows a path of this machine: /home/someone", "import torch"),
    example(
        "table",
        'import pandas as pd\n\npd.DataFrame({"file": ["/home/someone/atlas"]})\n',
        "the table of this example shows a path of this machine: /home/someone",
        "import torch",
    ),
]


def _said(name: str, words: str, says: str, at: str) -> Fault:
    """A fault in an example's docstring."""
    return Fault(f"examples/faults/{name}.py", head_of(name).replace("A page.", words) + "x = 1\n", says, at)


def _added(name: str, words: str, says: str, at: str) -> Fault:
    """A fault in a text between two cells; code of the first is hidden."""
    hidden = "# sphinx_gallery_start_ignore\nassert x\nassert x\n# sphinx_gallery_end_ignore\n"
    return example(name, f"x = 1\n\n{hidden}\n# %%\n{words}\nprint(x)\n", says, at)


TEXTS = [
    _said("example_reference", "See :ref:`nowhere_at_all`.", "undefined label: 'nowhere_at_all'", "See"),
    _added("text_reference", "# Text.\n#\n# See :ref:`nowhere`.\n", "undefined label: 'nowhere'", "# See"),
    _added("text_underline", "# A long heading\n# ----\n# Text.\n", "Title underline too short", "# ----"),
    _added("text_directive", "# Text.\n#\n# .. nothing:: x\n", 'Unknown directive type "nothing"', "# .. nothing"),
    Fault(
        "examples/faults/GALLERY_HEADER.rst",
        "Chapter\n-------\n\nSee :ref:`no_chapter`.\n",
        "label: 'no_chapter'",
        "See",
    ),
    _said("example_formula", r"A formula: :math:`\\frac{1`.", "this formula cannot be converted", "A formula"),
    example(
        "example_solution",
        "x = 1\n\n# %%\n# Exercise\n# --------\n# Try.\n#\n# .. solution::\n\n# %%\n# Next\n# ----\n# Text.\n\nx = 2\n",
        "nothing follows this solution mark",
        "# .. solution",
    ),
]

EXAMPLES = [*CLAIMS, *GRAPHS, *FIGURES, *CALCULATORS, *OUTPUTS, *TEXTS]
