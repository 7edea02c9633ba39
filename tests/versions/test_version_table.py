"""The table of changes: newest first, each with what it was and is; its filter has words for all kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas.versions.changes import DATA, EXPLAINED, KINDS, Changes
from atlas.versions.table_directive import table

KINK, SIGN = "x.abs() at x = [0]", "x.sign() at x = [0]"
OPERATOR = [["A"], [], "never", "works", "works", "no", "yes"]


def built(docs: Path, **kinds: Any) -> BeautifulSoup:
    (docs / DATA).parent.mkdir(parents=True, exist_ok=True)
    (docs / DATA).write_text(json.dumps({"versions": {"2.4.1": {}, "2.13.0": {}, "2.14.1": {}}, **kinds}))
    return BeautifulSoup(table(Changes(docs)), "html.parser")


def cells(page: BeautifulSoup) -> list[list[str]]:
    rows = page.select("tbody tr")
    return [[row.th.get_text(), *(cell.get_text(" ") for cell in row.select("td"))] for row in rows]


def test_each_kind_and_each_version_has_words(tmp_path: Path) -> None:
    said = json.loads(built(tmp_path).select_one("script").get_text())
    assert list(said["kinds"]) == ["", *KINDS, "in-2-14-1", "in-2-13-0"]
    assert all(said["kinds"].values()) and said["kinds"]["in-2-14-1"] == "new in 2.14.1"


@pytest.mark.parametrize(
    ("kind", "what", "points", "row"),
    [
        ("kinks", KINK, {"2.4.1": "[0]", "2.14.1": "[1]"}, [KINK, "2.13.0 → 2.14.1", "[0]", "[1]"]),
        ("kinks", KINK, {"2.4.1": "[0]", "2.13.0": None, "2.14.1": "[1]"}, [KINK, "2.4.1 → 2.14.1", "[0]", "[1]"]),
        (
            "signatures",
            "torch.f",
            {"2.4.1": "(x, dim=0)", "2.13.0": "(x, dim=None, *, out=None)"},
            ["torch.f", "2.4.1 → 2.13.0", "dim=0", "dim=None * out=None"],
        ),
        (
            "operators",
            "cdist",
            {"2.13.0": OPERATOR, "2.14.1": [*OPERATOR[:5], "yes", "yes"]},
            ["cdist: 2nd derivative", "2.13.0 → 2.14.1", "no", "yes"],
        ),
        (
            "refuses",
            "torch.no()",
            {"2.4.1": "no error", "2.14.1": "TypeError: <b>"},
            ["torch.no()", "2.13.0 → 2.14.1", "no error", "TypeError: <b>"],
        ),
    ],
)
def test_a_row(tmp_path: Path, kind: str, what: str, points: dict[str, Any], row: list[str]) -> None:
    page = built(tmp_path, **{kind: {what: points}})
    assert cells(page) == [row]
    assert page.select_one("tbody tr")["data-kinds"] == f"{kind} in-{row[1].rpartition(' ')[2].replace('.', '-')}"
    assert kind != "operators" or page.select_one("th a")["href"] == "operators.html#op-cdist"


def test_the_newest_come_first(tmp_path: Path) -> None:
    points = {"2.4.1": "[0]", "2.13.0": "[1]", "2.14.1": "[2]"}
    assert [row[1] for row in cells(built(tmp_path, kinks={KINK: points}))] == ["2.13.0 → 2.14.1", "2.4.1 → 2.13.0"]


def test_an_explanation_is_marked_where_it_repeats(tmp_path: Path) -> None:
    link = "https://github.com/pytorch/pytorch/pull/1"
    (tmp_path / EXPLAINED).parent.mkdir()
    change = f'[[change]]\nprobes = ["kinks: {KINK}", "kinks: {SIGN}"]\ntext = "Use `abs`."\nlink = "{link}"\n'
    (tmp_path / EXPLAINED).write_text(change)
    page = built(tmp_path, kinks={key: {"2.4.1": "[0]", "2.14.1": "[1]"} for key in (KINK, SIGN)})
    assert [row.get("class") for row in page.select("tbody tr")] == [None, ["repeats"]]
    assert page.select_one(".why a")["href"] == link and page.select_one(".why code").get_text() == "abs"
