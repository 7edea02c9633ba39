"""Every page, light and dark, wide and narrow: nothing from elsewhere, no error, nothing that axe finds, nothing that moves.

``looking.py`` has the list.
"""

from __future__ import annotations

import axe
import pytest
from looking import inspect_page
from playwright.sync_api import BrowserContext

from sources import lessons, sources_of_examples


def pages_of(scripts: list[str]) -> frozenset[str]:
    return frozenset(f"gallery/{script.removesuffix('.py')}.html" for script in scripts)


EXAMPLES, LESSONS = pages_of(sources_of_examples()), pages_of(lessons())
ERRORS = frozenset(page for page in EXAMPLES if page.startswith("gallery/errors/"))


def test_has_no_findings(visitor: BrowserContext, origin: str, looks: axe.Looks, page: str) -> None:
    kind = {"is_example": page in EXAMPLES, "is_lesson": page in LESSONS, "is_error": page in ERRORS}
    if findings := inspect_page(visitor, origin, page, looks, **kind):
        pytest.fail("\n".join(map(str, findings)), pytrace=False)
