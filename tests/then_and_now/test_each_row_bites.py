"""The check of each row of "Then and now" passes, and fails when PyTorch behaves as the older notes say."""

from __future__ import annotations

import runpy
from collections.abc import Iterator

import pytest
import torch

from sources import ROOT
from then_and_now.older_torch import CHANGES, Change
from then_and_now.page_rows import FLAGS, Row, read_rows

ROWS = {row.title: row for row in read_rows(ROOT / "docs" / "then-and-now.md")}
BITES = [pytest.param(title, made, id=f"{title}-{n}") for title in CHANGES for n, made in enumerate(CHANGES[title])]


@pytest.fixture(autouse=True)
def every_warning_each_time() -> Iterator[None]:
    """PyTorch gives some warnings once in a process, and here each check runs several times in one."""
    vars(torch.storage._warn_typed_storage_removal).pop("has_warned", None)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(always)


def test_the_flags_are_those_of_all_doctests() -> None:
    assert runpy.run_path(str(ROOT / "conf" / "conf.py"))["doctest_default_flags"] == FLAGS


def test_each_row_has_a_change_that_its_check_must_notice() -> None:
    assert list(CHANGES) == list(ROWS)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.title)
def test_the_check_passes(row: Row) -> None:
    assert row.run_check() == ""


@pytest.mark.parametrize(("title", "made"), BITES)
def test_the_check_fails_as_it_was(title: str, made: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[title]
    made(monkeypatch)
    report = row.run_check()
    monkeypatch.undo()
    assert "Failed example" in report
