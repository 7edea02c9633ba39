"""The tables of operators and of changes between versions: what a row says, and words of the filter for all kinds of rows."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas import operators, versions
from atlas.operators import make_operator_table
from atlas.versions import DATA, EXPLAINED, Changes, make_version_table, read_changes

# -- Operators ------------------------------------------------------------------------------------

ROW = {
    **{"name": "linalg.qr", "path": "", "nodes": ["LinalgQrBackward0"], "in_place": "", "aliases": ["qr"]},
    **{"saves": ["output"], "inputs": [], "shares": "never", "output_changed": "raises", "input_changed": "works"},
    **{"second": "yes", "forward": "no", "error": 1e-9, "notes": {"forward": "if `mode` is 'r'"}},
}


def show_operator(**changed: Any) -> BeautifulSoup:
    return BeautifulSoup(make_operator_table([{**ROW, **changed}]).astext(), "html.parser")


def read_kinds(page: BeautifulSoup) -> dict[str, str]:
    """The choice of a filter: its words by what they stand for."""
    return {option["value"]: option.get_text() for option in page.select("[name=that] option")}


def test_each_kind_of_operator_has_words() -> None:
    page = show_operator()
    said = read_kinds(page)
    assert set(said) == {"", *operators.KINDS} and all(said.values())
    assert {"{shown}", "{all}"} <= set(page.form["data-count"].split()) and page.output.get_text() == "1 operators"


READY = {"notes": {}, "forward": "yes"}
KINDS = {
    "output forward differ": {},
    "output wrong": {"notes": {}, "forward": "wrong"},
    "nothing works": {**READY, "saves": [], "output_changed": "works"},
    "input shares second": {**READY, "saves": ["input"], "shares": "sometimes", "second": "no"},
}


@pytest.mark.parametrize("kinds", KINDS)
def test_a_row_says_of_which_kinds_it_is(kinds: str) -> None:
    assert show_operator(**KINDS[kinds]).select_one("tbody tr")["data-kinds"] == kinds


def test_a_note_stands_below_its_word() -> None:
    cell = show_operator().select("tbody td")[-2]
    assert cell.get_text(" ") == "no if  mode  is 'r'" and cell.select_one("small code").get_text() == "mode"


def test_each_tensor_that_is_kept_has_its_name_and_its_note() -> None:
    row = show_operator(saves=["input", "new"], inputs=["index", "weight"], notes={"keeps weight": "if transposed"})
    assert row.select("tbody td")[1].get_text(" ") == "index weight if transposed a new tensor"


# -- Versions -------------------------------------------------------------------------------------

KINK, SIGN = "x.abs() at x = [0]", "x.sign() at x = [0]"
OPERATOR = [["A"], [], "never", "works", "works", "no", "yes"]


def show_changes(docs: Path, **kinds: Any) -> BeautifulSoup:
    (docs / DATA).parent.mkdir(parents=True, exist_ok=True)
    (docs / DATA).write_text(json.dumps({"versions": {"2.4.1": {}, "2.13.0": {}, "2.14.1": {}}, **kinds}))
    return BeautifulSoup(make_version_table(Changes(docs)).astext(), "html.parser")


def list_cells(page: BeautifulSoup) -> list[list[str]]:
    rows = page.select("tbody tr")
    return [[row.th.get_text(), *(cell.get_text(" ") for cell in row.select("td"))] for row in rows]


def test_each_kind_of_change_and_each_version_has_words(tmp_path: Path) -> None:
    said = read_kinds(show_changes(tmp_path))
    assert list(said) == ["", *versions.KINDS, "2.14.1", "2.13.0"]
    assert all(said.values()) and said["2.14.1"] == "new in 2.14.1"


NEW, OLD = "2.13.0 → 2.14.1", "2.4.1 → 2.13.0"
SIGNATURES = {"2.4.1": "(x, dim=0)", "2.13.0": "(x, dim=None, *, out=None)"}
ROWS = [
    ("kinks", {"2.4.1": "[0]", "2.14.1": "[1]"}, [KINK, NEW, "[0]", "[1]"]),
    ("kinks", {"2.4.1": "[0]", "2.13.0": None, "2.14.1": "[1]"}, [KINK, "2.4.1 → 2.14.1", "[0]", "[1]"]),
    ("signatures", SIGNATURES, ["torch.f", OLD, "dim=0", "dim=None * out=None"]),
    (
        "operators",
        {"2.13.0": OPERATOR, "2.14.1": [*OPERATOR[:5], "yes", "yes"]},
        ["cdist: 2nd derivative", NEW, "no", "yes"],
    ),
    ("refuses", {"2.4.1": "no error", "2.14.1": "TypeError: <b>"}, ["torch.no()", NEW, "no error", "TypeError: <b>"]),
]


@pytest.mark.parametrize(("kind", "points", "row"), ROWS)
def test_a_change_has_a_row(tmp_path: Path, kind: str, points: dict[str, Any], row: list[str]) -> None:
    page = show_changes(tmp_path, **{kind: {row[0].partition(": ")[0]: points}})
    assert list_cells(page) == [row]
    assert page.select_one("tbody tr")["data-kinds"] == f"{kind} {row[1].rpartition(' ')[2]}"
    assert kind != "operators" or page.select_one("th a")["href"] == "operators.html#op-cdist"


def test_the_newest_come_first(tmp_path: Path) -> None:
    page = show_changes(tmp_path, kinks={KINK: {"2.4.1": "[0]", "2.13.0": "[1]", "2.14.1": "[2]"}})
    assert [row[1] for row in list_cells(page)] == ["2.13.0 → 2.14.1", "2.4.1 → 2.13.0"]


def test_an_explanation_is_marked_where_it_repeats(tmp_path: Path) -> None:
    link = "https://github.com/pytorch/pytorch/pull/1"
    (tmp_path / EXPLAINED).parent.mkdir()
    change = f'[[change]]\nprobes = ["kinks: {KINK}", "kinks: {SIGN}"]\ntext = "Use `abs`."\nlink = "{link}"\n'
    (tmp_path / EXPLAINED).write_text(change)
    page = show_changes(tmp_path, kinks={key: {"2.4.1": "[0]", "2.14.1": "[1]"} for key in (KINK, SIGN)})
    assert [row.get("class") for row in page.select("tbody tr")] == [None, ["repeats"]]
    assert page.select_one(".why a")["href"] == link and page.select_one(".why code").get_text() == "abs"


def test_broken_data_are_named(tmp_path: Path) -> None:
    (tmp_path / DATA).parent.mkdir()
    (tmp_path / DATA).write_text("{")
    needs: list[str] = []
    env = SimpleNamespace(srcdir=tmp_path, note_dependency=needs.append)
    with pytest.raises(ValueError, match=r"reference/versions\.json cannot be used: JSONDecodeError"):
        read_changes(SimpleNamespace(env=env, error=ValueError))
    assert needs == [str(tmp_path / DATA), str(tmp_path / EXPLAINED)]
