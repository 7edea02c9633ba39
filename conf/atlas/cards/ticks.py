"""The line above a list of pages that says how many of them were read: ``conf/static/read_pages.js`` fills it."""

from __future__ import annotations

from docutils import nodes

from atlas.i18n import _, for_script


def ticks() -> nodes.raw:
    """The place of the line, with the words of the script."""
    said = {
        "read": str(_("read")),
        "count": str(_("You have read {read} of {all} pages to their end. Only this browser knows.")),
        "counted": str(_("You have read {read} pages to their end. Only this browser knows.")),
        "none": str(_("A page that you read to its end gets a tick here. Only this browser knows.")),
        "forget": str(_("Forget")),
    }
    return nodes.raw("", f'<div class="read-pages">{for_script(said)}</div>', format="html")
