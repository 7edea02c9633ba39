"""The tensor beside its memory does what PyTorch does: same shape, strides, offset and numbers, copies and messages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Page, expect
from visiting import open_page

PAGE = "gallery/tensors/strides.html"
WALKS, STEPS = 40, 6


@pytest.fixture
def cells(opened: Callable[[str], Page]) -> Page:
    return opened(PAGE)


def click(page: Page, call: str) -> dict[str, Any]:
    page.evaluate("call => document.querySelector(`button[data-call='${call}']`).click()", call)
    return run_script(page, "readCells")


def facts(x: torch.Tensor) -> list[str]:
    return [
        f".shape {tuple(x.shape)}",
        f".stride() {x.stride()}",
        f".storage_offset() {x.storage_offset()}",
        f".is_contiguous() {x.is_contiguous()}",
    ]


def test_walks_through_views_end_where_pytorch_does(cells: Page) -> None:
    choose = random.Random(0)
    refused, copied, seen = 0, 0, set()
    for _walk in range(WALKS):
        cells.locator(".cells-calls button").last.click()
        first = x = torch.arange(12).reshape(3, 4)
        state = run_script(cells, "readCells")
        for _step in range(STEPS):
            call = choose.choice(state["calls"])
            seen.add(call)
            state = click(cells, call)
            try:
                x = eval(f"x{call}", {"x": x})
            except RuntimeError as error:
                assert state["said"] == f"RuntimeError: {error}"
                refused += 1
            assert state["facts"] == facts(x), call
            assert state["numbers"] == (x.tolist() if x.dim() == 2 else [x.tolist()])
            assert state["memory"] == torch.tensor([], dtype=x.dtype).set_(x.untyped_storage()).tolist()
            shared = x.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
            if not state["said"].startswith("RuntimeError"):
                assert ("copy" in state["said"]) == (not shared)
            places = torch.arange(len(state["memory"])).as_strided(x.shape, x.stride(), x.storage_offset())
            assert state["read"] == places.unique().tolist()
            copied += not shared
    assert refused > 5 and copied > 5 and len(seen) == cells.locator("button[data-call]").count()


def test_a_number_points_to_its_cell(cells: Page) -> None:
    cells.get_by_role("button", name="x.t()").click()
    cells.locator(".cells-tensor tr").nth(1).locator("td").nth(2).hover()  # x.t()[1, 2] is number 9
    expect(cells.locator(".cells-memory td.pointed")).to_have_text("9")


def test_starting_again_brings_back_the_first_tensor(cells: Page) -> None:
    before = run_script(cells, "readCells")
    for call in (".t()", "[1:]", ".reshape(-1)"):
        click(cells, call)
    cells.get_by_role("button", name="start again").click()
    assert run_script(cells, "readCells") == before


def test_without_javascript_there_is_a_picture(scriptless: BrowserContext, origin: str) -> None:
    tab = open_page(scriptless, origin, PAGE)
    assert tab.locator(".cells-tensor td").count() == tab.locator(".cells-memory td").count() == 12
    assert not tab.locator(".cells-calls button").count()
