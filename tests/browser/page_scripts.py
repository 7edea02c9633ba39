"""Run a function of ``page_scripts.js`` in an open page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

_FUNCTIONS = Path(__file__).with_name("page_scripts.js").read_text(encoding="utf-8")


def run_script(where: Page | Locator, name: str, given: object = None) -> Any:
    """What a function answers to ``given``. Of an element it gets the element first."""
    return where.evaluate(f"(...given) => {{{_FUNCTIONS}\nreturn {name}(...given);}}", given)
