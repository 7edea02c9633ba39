"""A page that needs a GPU has a half that needs none, with outputs and a figure, and a script that ends by itself after it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from atlas.gallery.scripts import find_marks, split_at_mark
from markup import FIGURES, OUTPUTS, read, text_of
from sources import ROOT, sources_of_examples

SCRIPTS = [
    script
    for script in sources_of_examples()
    if script.startswith("cuda/") or find_marks((ROOT / "examples" / script).read_text(encoding="utf-8"))
]
GUARD = """
if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()
"""


def faults_of_script(text: str) -> list[str]:
    """What keeps a script from ending by itself, on a machine without a GPU, at the mark that the site goes by."""
    if len(find_marks(text)) != 1:
        return ["it has no mark"]
    before, after = split_at_mark(text)
    first_cell = re.sub(r"\A(?:#.*\n|\s*\n|import sys\n)*", "\n", after)
    found = [] if first_cell.startswith(GUARD) else ["no guard stands behind the mark"]
    asks = any(getattr(node, "attr", "") == "is_available" for node in ast.walk(ast.parse(before)))
    return found + ["the first half asks for a GPU"] * asks


def on_paper(page: BeautifulSoup, what: str) -> list[Tag]:
    """Those parts of a page that stand before its note on where the rest comes from."""
    (note,) = page.select(".provenance")
    return [part for part in page.select(f"article :is({what})") if note in part.find_all_next()]


@pytest.mark.parametrize("of_page", SCRIPTS)
def test_the_first_half_needs_no_gpu_and_shows_something(site: Path, of_page: str) -> None:
    assert faults_of_script((ROOT / "examples" / of_page).read_text(encoding="utf-8")) == []
    page = read(site / "gallery" / Path(of_page).with_suffix(".html"))
    assert len([output for output in on_paper(page, OUTPUTS) if text_of(output)]) >= 3 and on_paper(page, FIGURES)
    assert page.select("#measured-on-a-gpu > h2")


def test_what_is_wrong_with_a_script_is_found() -> None:
    good = f"import torch\n\n# %%\n# Measured.\n#\n# .. needs-a-gpu::\n#\n# More.\n{GUARD}"
    assert faults_of_script(good) == []
    assert faults_of_script(good.replace(".. needs", "needs")) == ["it has no mark"]
    assert faults_of_script(good.replace("sys.exit()", "pass")) == ["no guard stands behind the mark"]
    assert faults_of_script(good.replace("#\n# More.", "\nprint(1)\n")) == ["no guard stands behind the mark"]
    assert faults_of_script(GUARD + good) == ["the first half asks for a GPU"]
