"""The filter above the table of operators has words for all that its script knows, and says nothing else."""

from __future__ import annotations

import json
import re

from bs4 import BeautifulSoup

from atlas.operators.table_directive import table
from sources import ROOT

SCRIPT = ROOT / "conf" / "static" / "operators.js"


def test_each_kind_of_row_has_words() -> None:
    said = json.loads(BeautifulSoup(table([]), "html.parser").select_one(".operators script").get_text())
    kinds = re.findall(r"^    (\w+): .*=>", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert kinds and list(said["kinds"]) == kinds
    assert all(said["kinds"].values())
    assert {"{shown}", "{all}"} <= set(said["count"].split())
