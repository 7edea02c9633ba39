"""Translations: ``_()`` for sentences that our extensions put on pages.

All of them are in one catalog. Each is a whole sentence, as the order of words differs between languages. There is no
translation yet; one would be ``conf/locale/<language>/LC_MESSAGES/atlas.po``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.locale import get_translation

CATALOG = "atlas"

_ = get_translation(CATALOG)


def for_script(said: dict[str, Any]) -> str:
    """The sentences that a script of ``conf/static`` shows, as JSON in an element that the script reads.

    >>> for_script({"end": "</script>"})
    '<script type="application/json">{"end":"\\\\u003c/script>"}</script>'
    """
    data = json.dumps(said, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>'


def setup(app: Sphinx) -> None:
    """Make the catalog known to Sphinx."""
    app.add_message_catalog(CATALOG, str(Path(__file__).parents[1] / "locale"))
