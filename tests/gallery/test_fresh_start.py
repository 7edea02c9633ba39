"""Every example starts as in a fresh interpreter, whatever the script before it has changed.

For the default dtype, the grad mode and anomaly mode, and for a script that fails, see ``test_failing_runs.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

Page = Callable[[str], BeautifulSoup]
CELLS = ["modes and seed", "warnings", "numbers and threads"]


def _outputs(page: BeautifulSoup) -> list[str]:
    return [output.get_text().strip() for output in page.select(".sphx-glr-script-out")]


@pytest.mark.parametrize("cell", CELLS)
def test_the_next_page_finds_nothing_changed(page: Page, cell: str) -> None:
    before, after = _outputs(page("start_1_changes_everything")), _outputs(page("start_2_finds_it_fresh"))
    assert len(before) == len(after) == len(CELLS)
    number = CELLS.index(cell)
    assert after[number] == before[number]


def test_the_start_is_known(page: Page) -> None:
    """Not only the same for both pages, but that of a fresh interpreter, where warnings are errors."""
    modes, warned, _ = _outputs(page("start_1_changes_everything"))
    assert modes.splitlines() == [
        "dtype and device: torch.float32 cpu",
        "grad mode, anomaly mode: True False",
        "deterministic: False",
        "seed of another page: False",
    ]
    assert warned == "error: look out"
