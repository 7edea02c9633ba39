"""The table of changes: newest first, each with what it was and is; its filter has words for all kinds."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas.versions import history, table_directive
from atlas.versions.explained import Explanation
from atlas.versions.sources import SHOWN, whole_history_of
from versions.some_data import OWN, data, keep, sources

KINK, SIGN = "x.abs() at x = [0]", "x.sign() at x = [0]"


def built(root: Path, *all_data: dict[str, Any]) -> BeautifulSoup:
    keep(root, *all_data)
    return BeautifulSoup(table_directive.table(history.load(root / "docs")), "html.parser")


def cells(page: BeautifulSoup) -> list[list[str]]:
    rows = page.select("tbody tr")
    return [[row.th.get_text(), *(cell.get_text(" ") for cell in row.select("td"))] for row in rows]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sources(tmp_path)


def test_each_kind_and_each_version_has_words(root: Path) -> None:
    page = built(root, data(root, "2.4.1"), data(root, "99.1.0"))
    said = json.loads(page.select_one("script").get_text())
    assert list(said["kinds"]) == ["", *history.KINDS, "in-99-1-0", f"in-{OWN.replace('.', '-')}"]
    assert all(said["kinds"].values()) and said["kinds"]["in-99-1-0"] == "new in 99.1.0"


def test_a_kink(root: Path) -> None:
    page = built(root, data(root, "99.1.0", probes={"kinks": {KINK: "[1]"}}))
    assert cells(page) == [[KINK, f"{OWN} → 99.1.0", "[0]", "[1]"]]
    assert page.select_one("tbody tr")["data-kinds"] == "kinks in-99-1-0"


def test_of_a_signature_what_changed(root: Path) -> None:
    signatures = {
        "count": 1,
        "missing": [],
        "gone": [],
        "differ": {"torch.f": ["(x, dim=0)", "(x, dim=None, *, out=None)"]},
    }
    page = built(root, data(root, "99.1.0", signatures=signatures))
    assert cells(page) == [["torch.f", f"{OWN} → 99.1.0", "dim=0", "dim=None * out=None"]]


def test_an_operator_leads_to_its_row(root: Path) -> None:
    differ = [{"name": "cdist", "column": "second", "was": "no", "is": "yes"}]
    operators = {**data(root, "99.1.0")["operators"], "differ": differ}
    page = built(root, data(root, "99.1.0", operators=operators))
    assert cells(page) == [["cdist: 2nd derivative", f"{OWN} → 99.1.0", "no", "yes"]]
    assert page.select_one("th a")["href"] == "operators.html#op-cdist"


def test_markup_in_values_is_text(root: Path) -> None:
    page = built(root, data(root, "99.1.0", probes={"refuses": {"torch.no()": "TypeError: <b>"}}))
    assert cells(page)[0][2:] == ["no error", "TypeError: <b>"]


def test_an_explanation_is_marked_where_it_repeats(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = Explanation("Use `abs`.", "https://github.com/pytorch/pytorch/pull/1")
    monkeypatch.setattr(table_directive, "explanations", lambda: {("kinks", KINK): why, ("kinks", SIGN): why})
    page = built(root, data(root, "99.1.0", probes={"kinks": {KINK: "[1]", SIGN: "[1]"}}))
    assert [row.get("class") for row in page.select("tbody tr")] == [None, ["repeats"]]
    assert page.select_one(".why a")["href"] == why.link and page.select_one(".why code").get_text() == "abs"


def test_the_page_is_read_again_when_what_it_shows_changes(root: Path) -> None:
    keep(root, data(root, "99.1.0"))
    noted = set()
    env = SimpleNamespace(
        srcdir=root / "docs",
        docname="reference/versions",
        note_dependency=lambda path, docname="": noted.add(path),
    )
    assert whole_history_of(SimpleNamespace(env=env)).versions
    assert root / "docs" / SHOWN in noted
