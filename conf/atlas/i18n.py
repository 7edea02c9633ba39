"""The site's own words, in the language of the build.

Templates and authors write whole sentences; so do the extensions, and each sentence goes through one catalogue. There is no
translation yet; one would be ``conf/locale/<language>/LC_MESSAGES/atlas.po``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.locale import get_translation

CATALOGUE = "atlas"

_ = get_translation(CATALOGUE)


def for_script(said: dict[str, Any]) -> str:
    """What a script of ``conf/static`` is to say, as an element beside what it works on.

    >>> for_script({"end": "</script>"})
    '<script type="application/json">{"end":"\\\\u003c/script>"}</script>'
    """
    data = json.dumps(said, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>'


def setup(app: Sphinx) -> None:
    """Make the catalogue known to Sphinx."""
    app.add_message_catalog(CATALOGUE, str(Path(__file__).parents[1] / "locale"))
