"""Every page, light and dark, wide and narrow: nothing from elsewhere, no error, nothing that axe finds, nothing that moves.

``looking.py`` has the list. A page that is as it was when nothing was found is skipped; ``--all-visits`` visits it.
"""

from __future__ import annotations

import axe
import pytest
from looking import inspect
from playwright.sync_api import BrowserContext
from receipts import Receipts

from sources import lessons, sources_of_examples


def pages_of(scripts: list[str]) -> frozenset[str]:
    return frozenset(f"gallery/{script.removesuffix('.py')}.html" for script in scripts)


EXAMPLES, LESSONS = pages_of(sources_of_examples()), pages_of(lessons())
ERRORS = frozenset(page for page in EXAMPLES if page.startswith("gallery/errors/"))


def test_has_no_findings(
    visitor: BrowserContext, origin: str, looks: axe.Looks, receipts: Receipts, page: str
) -> None:
    kind = {"is_example": page in EXAMPLES, "is_lesson": page in LESSONS, "is_error": page in ERRORS}
    findings = receipts.visit(page, lambda: inspect(visitor, origin, page, looks, **kind))
    if findings is None:
        pytest.skip("visited before, and nothing has changed since (--all-visits visits all)")
    if findings:
        pytest.fail("\n".join(map(str, findings)), pytrace=False)
