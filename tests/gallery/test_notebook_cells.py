"""A notebook's first cell installs what its script imports, and its text is Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from atlas.gallery import notebooks
from atlas.gallery.notebooks import convert_texts, list_packages, make_first_cell
from atlas.gallery.process import Outcome
from atlas.gallery.scripts import MARK
from gallery.faulty import HEALTHY

PACKAGES = """
import math, torchgen
import torch.nn.functional as F
from . import neighbor
from pathlib import Path
from sklearn.datasets import load_digits
def late():
    import pandas, not_installed_here
"""


def test_packages() -> None:
    assert list_packages(PACKAGES) == ["not-installed-here", "pandas", "scikit-learn", "torch"]


def test_the_first_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "version", lambda package: "2.13.0+cpu")
    code = "import matplotlib.pyplot as plt\nimport torch\n"
    comment, install = make_first_cell(code).splitlines()
    assert comment.startswith("# ") and "2.13" in comment and "GPU" not in comment
    assert install == '%pip install --quiet "torch>=2.13" matplotlib'
    *comments, again = make_first_cell(f"{code}\n# %%\n# Measured\n# --------\n# {MARK}\n").splitlines()
    assert any("needs a GPU" in line for line in comments) and again == install


TEXT = """\
Title
=====

.. index::
   ! single: a symptom

.. in-short::

   Two
   lines.

See :doc:`the
guide </guide/x>`, :ref:`a page <sphx_glr_a.py>`, `there <https://a.example>`_ and :math:`x^2`.

.. a-box-that-nobody-has-heard-of:: With words

   More, and ``code``.

.. parsed-literal::

   Loss.cu:94: failed
"""


def test_the_text_is_markdown() -> None:
    first, second = convert_texts([TEXT, "Next\n----\nDo it.\n\n.. solution::\n"])
    assert first.startswith("# Title\n") and "symptom" not in first
    assert "> **In short**\n>\n> Two\n> lines.\n" in first
    assert "See *the\nguide*, *a page*, [there](https://a.example) and $x^2$." in first
    assert "> **A box that nobody has heard of**\n>\n> With words\n>\n> More, and `code`.\n" in first
    assert "    Loss.cu:94: failed" in first and ".. " not in first and "<div" not in first
    assert second == "## Next\n\nDo it.\n\n> **Solution**"


HARNESS = """
# %%
# This raises:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    if x > 1:
        x.sum(5)
# sphinx_gallery_start_ignore
except IndexError as error:
    print("IndexError: no such", "dimension")
# sphinx_gallery_end_ignore

# %%
# A class:


class Cell:
    y = x
"""


def test_code_that_raises_is_shown_without_its_harness(run: Callable[..., dict[str, Outcome]]) -> None:
    """And in the notebook it does not keep the cells below from running."""
    outcome = run({"page": HEALTHY + HARNESS})["page"]
    assert outcome.fault is None, outcome.fault
    page = (outcome.job.made / "page.rst").read_text(encoding="utf-8")
    assert "\n    if x > 1:\n        x.sum(5)\n" in page and "try:" not in page and ":dedent:" not in page
    assert "IndexError: no such dimension" in page
    cells = json.loads((outcome.job.made / "page.ipynb").read_text(encoding="utf-8"))["cells"]
    tagged = {"".join(cell["source"]): cell["metadata"].get("tags") for cell in cells if cell["cell_type"] == "code"}
    assert tagged["if x > 1:\n    x.sum(5)"] == ["raises-exception"]
    assert tagged["class Cell:\n    y = x"] is None
    assert "".join(cells[0]["source"]).startswith("# What this notebook needs")
