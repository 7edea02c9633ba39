"""No page has an element for which the site's style sheet has left out the rules."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from atlas.page_parts.style_sheet import UNUSED

_CLASSES = re.compile(r'\bclass="([^"]*)"')


def test_no_page_uses_a_class_without_rules(site: Path, all_pages: list[str]) -> None:
    used = defaultdict(set)
    for name in all_pages:
        for classes in set(_CLASSES.findall((site / name).read_text(encoding="utf-8"))):
            for found in filter(UNUSED.fullmatch, classes.split()):
                used[found].add(name)
    where = "\n".join(f"{found}: {', '.join(sorted(pages)[:3])}" for found, pages in sorted(used.items()))
    assert not used, f"take these classes out of UNUSED in conf/atlas/page_parts/style_sheet.py:\n{where}"
