"""A scraper for ``# varies: SENTENCE``: the page says that this output differs from build to build, and why.

Times are the usual case. Whoever compares two builds finds the declared outputs by the directive's class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .request_comments import Varies, requests_for


def scrape(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for the note that stands above a varying output."""
    found = requests_for(Varies, block, block_vars["src_file"])
    return "".join(f"\n.. varies::\n\n   {request.why}\n\n" for request in found)
