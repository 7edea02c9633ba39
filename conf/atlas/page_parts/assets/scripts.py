"""A page loads the scripts that have something to do on it, and no other.

Sphinx and its extensions put every script on every page. A script that is not named here stays on all of them.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

#: What the text of a page has if the script finds something there.
NEEDED = {
    "_static/clipboard.min.js": r'<div class="highlight"',
    "_static/copybutton.js": r'<div class="highlight"',
    "_static/design-tabs.js": r"\bsd-tab-label\b",
    "_static/graph_code.js": r'\{"made_by":',
    "_static/graph_live.js": r"\bgraph-whose\b",
    "_static/graph_player.js": r"\bgraph-bar\b",
    "_static/long_table.js": r"\blong-table\b",
    "_static/memory_cells.js": r"\bmemory-cells\b",
    "_static/page_filter.js": r"\bpage-filter\b",
    "_static/predict.js": r'<form class="predict',
    "_static/read_pages.js": r"\b(sphx-glr-footer|read-pages)\b",
    "_static/sg-tags.js": r"\bdata-sgtags=",
    "_static/upright.js": r"\bdata-upright=",
}


def keep_needed(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Take the others out. Connected to ``html-page-context``, after what adds scripts to a page."""
    body = context.get("body", "")
    context["script_files"] = [
        script for script in context["script_files"] if re.search(NEEDED.get(script.filename, ""), body)
    ]


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", keep_needed, priority=900)
