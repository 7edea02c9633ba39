"""No page has an element for which the site's style sheet has left out the rules."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from atlas.page_weight import SHEET, UNUSED, join_sheets

_CLASSES = re.compile(r'\bclass="([^"]*)"')


def test_no_page_uses_a_class_without_rules(site: Path, all_pages: list[str]) -> None:
    used = defaultdict(set)
    for name in all_pages:
        for classes in set(_CLASSES.findall((site / name).read_text(encoding="utf-8"))):
            for found in filter(UNUSED.fullmatch, classes.split()):
                used[found].add(name)
    where = "\n".join(f"{found}: {', '.join(sorted(pages)[:3])}" for found, pages in sorted(used.items()))
    assert not used, f"take these classes out of UNUSED in conf/atlas/page_weight.py:\n{where}"


@pytest.mark.parametrize(
    "sheet",
    ["pygments", "styles/furo", "mystnb.*", "copybutton", "sg_gallery", "sphinx-design.min", "graph", "atlas"],
)
def test_it_has_the_rules_of_each_sheet_as_the_build_has_left_it(site: Path, sheet: str) -> None:
    """An extension may write its sheet after the pages, as furo does with the colors of code."""
    (path,) = (site / "_static").glob(f"{sheet}.css")
    rules = join_sheets({"_static/sheet.css": path.read_text(encoding="utf-8")}).strip()
    assert rules and rules in (site / SHEET).read_text(encoding="utf-8")
