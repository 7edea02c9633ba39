"""Examples that must not get through, each with one fault."""

from __future__ import annotations

from tiny.broken import Fault, example, head_of

LEAF = "leaf = torch.tensor(2.0, requires_grad=True)\n"
PLOT = "import matplotlib.pyplot as plt\n\nfigure, axes = plt.subplots()\n"

GRAPHS = [
    example("graph_missing", "y = torch.tensor(1.0)\n# graph: qqq -- Nothing\n", "its tensors are: y", "# graph"),
    example("graph_of_nothing", "y = torch.tensor(1.0) * 2\n# graph: y -- No graph\n", "'y' has no graph", "# graph"),
]

FIGURES = [
    example("figure_untitled", f"{PLOT}# figure: No line at all\n", "this figure has no title", "# figure"),
    example("figure_without_text", f'{PLOT}axes.set_title("Empty")\n', "a figure of this cell has no text", ""),
    example("text_without_figure", "# figure: A line\n", "a figure that this cell does not draw", "# figure"),
    example("predict_in_sight", "x = 1\n# predict: x -- What?\n", "put its cell below '.. solution::'", ""),
]

POWER = "def size(a=1):\n    return {{'a': {}}}\n\n# %%\n# .. calculator:: {}\n\nx = 1\n"
CALCULATORS = [
    example("power", POWER.format("a**2", "size"), "line 11: the browser cannot compute: a ** 2", "# .. calc"),
    example("statement", POWER.format("a}\n    {a", "size"), "line 12: the browser cannot compute: {a}", "# .. calc"),
    example("infinite", POWER.format("a / 0", "size"), "size() raises ZeroDivisionError", "# .. calc"),
    example("no_function", POWER.format("a", "sizes"), "there must be a function sizes", "# .. calc"),
]

OUTPUTS = [
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
    _added("text_directive", "# Text.\n#\n# .. nothing:: x\n", 'Unknown directive type "nothing"', "# .. nothing"),
    Fault(
        "examples/faults/GALLERY_HEADER.rst",
        "Chapter\n-------\n\nSee :ref:`no_chapter`.\n",
        "label: 'no_chapter'",
        "See",
    ),
]

#: Scripts that sphinx-gallery and others read too, and cannot.
UNREADABLE = [
    example("a_syntax", "x = 1\nx = = 2\n", "SyntaxError: invalid syntax", "x = = 2"),
    Fault("examples/faults/a_empty.py", "", "a page begins with a docstring"),
    Fault("examples/faults/a_latin.py", head_of("Latin-1") + "x = '\udcff'\n", "save it as UTF-8", "x ="),
]

EXAMPLES = [*UNREADABLE, *GRAPHS, *FIGURES, *CALCULATORS, *OUTPUTS, *TEXTS]
