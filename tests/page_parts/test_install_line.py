"""Each example says what to install to run it elsewhere: what it imports, and the PyTorch that made its page."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from bs4 import BeautifulSoup

from atlas.page_parts.foot import install_line

Page = Callable[[str], BeautifulSoup]
TORCH = version("torch").partition("+")[0]


@pytest.mark.parametrize(("name", "more"), [("plots", " matplotlib"), ("graph_of_a_product", "")])
def test_it_names_what_the_script_imports(page: Page, name: str, more: str) -> None:
    (line,) = page(name).select(".sphx-glr-footer .install-line pre")
    others = line.get_text().strip().removeprefix(f"pip install torch=={TORCH}")
    assert more in others and all(word.isidentifier() for word in others.split())


def test_it_can_be_copied(page: Page) -> None:
    """``copybutton_selector`` of conf.py finds it: a ``pre`` in a ``div.highlight``, which is no output."""
    found = page("plots").select("div:not(.output_area):not(.sphx-glr-script-out) > div.highlight > pre")
    assert page("plots").select_one(".install-line pre") in found


@pytest.mark.parametrize("name", ["gallery/basics/index", "index"])
def test_a_page_without_a_script_has_none(page: Page, name: str) -> None:
    assert not page(name).select(".install-line")


def test_names_on_pypi_stand_in_it_and_no_build_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_line, "version", lambda package: "2.13.0+cpu")
    line = install_line.command("import math\nimport torch\nimport pandas as pd\nfrom sklearn import datasets\n")
    assert line == "pip install torch==2.13.0 pandas scikit-learn"
