"""The site's own words, in the language of the build.

Templates and authors write whole sentences; so do the extensions, and each sentence goes through one catalogue,
``conf/locale/<language>/LC_MESSAGES/atlas.po``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.locale import get_translation

CATALOGUE = "atlas"

_ = get_translation(CATALOGUE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the catalogue known to Sphinx."""
    app.add_message_catalog(CATALOGUE, str(Path(__file__).parents[2] / "locale"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
