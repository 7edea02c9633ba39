"""The first cell of a notebook installs what its script imports, by the names that PyPI has for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from atlas.runner import notebook
from atlas.runner.halves import MARK
from atlas.runner.outputs import fingerprint


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import math\nfrom pathlib import Path", []),
        ("import torch.nn.functional as F", ["torch"]),
        ("import torchgen", ["torch"]),
        ("from sklearn.datasets import load_digits", ["scikit-learn"]),
        ("def late():\n    import pandas", ["pandas"]),
        ("try:\n    import not_installed_here\nexcept ImportError: ...", ["not-installed-here"]),
        ("from . import neighbour", []),
    ],
)
def test_packages(code: str, expected: list[str]) -> None:
    assert notebook.packages(code) == expected


def test_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "page.py"
    script.write_text("import matplotlib.pyplot as plt\nimport torch\n")
    monkeypatch.setattr(notebook, "version", lambda package: "2.13.0+cpu")
    comment, install = notebook.first_cell(script).splitlines()
    assert comment.startswith("# ") and "2.13" in comment
    assert install == '%pip install --quiet "torch>=2.13" matplotlib'


def test_the_cell_says_that_a_gpu_is_needed(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(f"import torch\n\n# %%\n# Measured\n# --------\n# {MARK}\n")
    *comments, install = notebook.first_cell(script).splitlines()
    assert any("needs a GPU" in line for line in comments) and all(line.startswith("# ") for line in comments)
    assert install.startswith("%pip install")
    script.write_text("import torch\n")
    assert "GPU" not in notebook.first_cell(script)


def test_a_script_that_is_no_python_has_a_cell_too(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("import (")
    assert '"torch>=' in notebook.first_cell(script)


def test_the_text_of_a_cell_has_no_directives() -> None:
    text = (
        "# Title\n\n.. index::\n   ! single: a symptom\n   single: another\n\n"
        ".. in-short::\n\n   Two\n   lines.\n\n   More.\n\nText.\n"
        "See :doc:`the\nguide </guide/x>`.\n\n.. how-measured:: It counts\n   nodes.\n"
    )
    assert notebook.without_directives(text) == (
        "# Title\n\n> **In short**\n>\n> Two\n> lines.\n>\n> More.\n\nText.\n"
        "See *the guide*.\n\n*How this was measured:* It counts nodes.\n"
    )
    assert notebook.without_directives("Do it.\n\n.. solution::\n") == "Do it.\n\n**Solution**\n"
    assert notebook.without_directives("Below.\n\n.. needs-a-gpu::\n") == (
        "Below.\n\n*From here on, the code needs a GPU.*\n"
    )
    assert notebook.without_directives("A `name_` and [a](b)c_\n") == "A `name_` and [a](b)c_\n"


def test_what_another_version_does_is_told_without_its_values() -> None:
    text = (
        "Text.\n\n.. torch-changed:: 2.14\n   :probe: kinks: x.clamp(0, 1) at x = [0, 1]\n\n"
        "   It is 0 [there](u)_.\n   So start inside.\n\n.. torch-changed:: 2.15\n   :probe: warns: f(`x`)\n\n   More.\n"
    )
    assert notebook.without_directives(text) == (
        "Text.\n\n> **Changed in PyTorch 2.14:** It is 0 [there](u).\n> So start inside.\n\n"
        "> **Changed in PyTorch 2.15:** More.\n\n"
    )


def test_a_change_of_the_cell_makes_notebooks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that writes the cell is among what each example's outputs depend on, and so is torch's version."""
    site = Path(shutil.copytree(fingerprint._SITE, tmp_path / "atlas"))
    monkeypatch.setattr(fingerprint, "_SITE", site)
    before = fingerprint.code()
    own = site / Path(notebook.__file__).relative_to(Path(notebook.__file__).parents[1])
    own.write_text(own.read_text().replace("%pip install", "%pip install --upgrade"))
    assert fingerprint.code() != before
    assert "torch" in fingerprint.PACKAGES
