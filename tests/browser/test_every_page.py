"""Every page, light and dark, wide and narrow: nothing from elsewhere, no error, nothing that axe finds, nothing that moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from visiting import LARGEST_SHIFT, Visit

Visits = Callable[[str, str, int], Visit]

pytestmark = [
    pytest.mark.parametrize("width", [1280, 390]),
    pytest.mark.parametrize("theme", ["light", "dark"]),
]


def test_asks_no_other_site(visits: Visits, page: str, theme: str, width: int) -> None:
    assert not visits(page, theme, width).other_sites


def test_has_no_errors(visits: Visits, page: str, theme: str, width: int) -> None:
    assert not visits(page, theme, width).errors


def test_can_be_used_by_everyone(visits: Visits, page: str, theme: str, width: int) -> None:
    found = visits(page, theme, width).accessibility
    assert not found, "\n".join(found)


def test_graphs_can_be_read(visits: Visits, page: str, theme: str, width: int) -> None:
    assert not visits(page, theme, width).pale_graphs


def test_fits_the_window(visits: Visits, page: str, theme: str, width: int) -> None:
    visit = visits(page, theme, width)
    assert not visit.too_wide
    assert not visit.small_text
    assert not visit.unreachable, "these scroll, and a keyboard cannot reach them"


def test_stands_still_while_it_loads(visits: Visits, page: str, theme: str, width: int) -> None:
    shifts = visits(page, theme, width).shifts
    assert sum(value for value, _ in shifts) < LARGEST_SHIFT, shifts
