"""The line above a list of pages that says how many of them were read: ``conf/static/read_pages.js`` fills it."""

from __future__ import annotations

from docutils import nodes

from atlas.toolbox import json_for_script


def ticks() -> nodes.raw:
    """The place of the line, with the words of the script."""
    said = {
        "read": "read",
        "count": "You have read {read} of {all} pages to their end. Only this browser knows.",
        "counted": "You have read {read} pages to their end. Only this browser knows.",
        "none": "A page that you read to its end gets a tick here. Only this browser knows.",
        "forget": "Forget",
    }
    return nodes.raw("", f'<div class="read-pages">{json_for_script(said)}</div>', format="html")
