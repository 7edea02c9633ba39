"""The columns of a table of text have given widths: a browser that works them out moves them while the rows arrive."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup

from markup import read

FOLDED_OR_MEASURED = ".graph-table, .dataframe, .long-table table, .memory-cells table, .indextable"


def without_widths(page: BeautifulSoup) -> list[str]:
    tables = page.select(f"article table:not({FOLDED_OR_MEASURED})")
    return [table.get_text(" ", strip=True)[:60] for table in tables if not table.colgroup]


def test_tables_have_widths(site: Path, page: str) -> None:
    assert not without_widths(read(site / page)), "put the table into ```{table} with :widths:"


def test_a_table_without_widths_is_found() -> None:
    page = BeautifulSoup('<article><table class="docutils"><tr><td>one</td></tr></table></article>', "html.parser")
    assert without_widths(page) == ["one"]
