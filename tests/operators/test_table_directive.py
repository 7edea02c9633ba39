"""The table of operators: rows say of which kinds they are, and the filter has words for all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas.operators.table_directive import KINDS, table

ROW = {
    **{"name": "linalg.qr", "path": "", "nodes": ["LinalgQrBackward0"], "in_place": "", "aliases": ["qr"]},
    **{"saves": ["output"], "inputs": [], "shares": "never", "output_changed": "raises", "input_changed": "works"},
    **{"second": "yes", "forward": "no", "error": 1e-9, "notes": {"forward": "if `mode` is 'r'"}},
}


def built(**changed: Any) -> BeautifulSoup:
    return BeautifulSoup(table([{**ROW, **changed}]), "html.parser")


def test_each_kind_has_words() -> None:
    said = json.loads(built().select_one(".operators script").get_text())
    assert set(said["kinds"]) == {"", *KINDS} and all(said["kinds"].values())
    assert {"{shown}", "{all}"} <= set(said["count"].split())


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        ({}, "output forward differ"),
        ({"notes": {}, "forward": "wrong"}, "output wrong"),
        ({"notes": {}, "forward": "yes", "saves": [], "output_changed": "works"}, "nothing works"),
        (
            {"notes": {}, "forward": "yes", "saves": ["input"], "shares": "sometimes", "second": "no"},
            "input shares second",
        ),
    ],
)
def test_a_row_says_of_which_kinds_it_is(changed: dict[str, Any], kinds: str) -> None:
    assert built(**changed).select_one("tbody tr")["data-kinds"] == kinds


def test_a_note_stands_below_its_word() -> None:
    cell = built().select("tbody td")[-2]
    assert cell.get_text(" ") == "no if  mode  is 'r'" and cell.select_one("small code").get_text() == "mode"


def test_each_tensor_that_is_kept_has_its_name_and_its_note() -> None:
    row = built(saves=["input", "new"], inputs=["index", "weight"], notes={"keeps weight": "if transposed"})
    assert row.select("tbody td")[1].get_text(" ") == "index weight if transposed a new tensor"
