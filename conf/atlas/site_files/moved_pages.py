"""An address that a page once had leads on to where its content is now.

``docs/moved-pages.txt`` has a line for each: the old address, a space, and the new one, both from the root of the site. At the
old address a host of static pages has a page that leads on, and nginx, which reads ``moved-pages.conf``, answers that it moved.

``docs/published-pages.txt`` lists what was ever published, and the build fails if one of these addresses is gone. Its own
``published-pages.txt`` is that list with the pages of today; the workflow ``publish`` proposes it as the next.

sphinx-reredirects was tried. Each of its pages has another script within, which the policy would have to list by itself; they
name no address for search engines, are written anew by every build, and take the place of a page that still stands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.toolbox import write_if_changed, write_whole

logger = logging.getLogger(__name__)

MOVED = "moved-pages.txt"
PUBLISHED = "published-pages.txt"
FOR_NGINX = "moved-pages.conf"

#: The same on every page, so that the policy has one hash for all. A reader's anchor goes along, and "back" does not lead here.
_SCRIPT = (
    "const to = new URL(document.currentScript.dataset.to, location.href);"
    "if (location.hash) to.hash = location.hash;"
    "location.replace(to);"
)


class Move(NamedTuple):
    old: str
    new: str
    """May have an anchor."""
    line: int

    @property
    def page(self) -> str:
        return self.new.partition("#")[0]

    @property
    def anchor(self) -> str:
        return self.new.partition("#")[2]


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The words of each line of a list, with its number. A line that begins with ``#`` is a comment; no file, no lines."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.split()


def moves(docs: Path) -> list[Move]:
    """The moves that are written down, those aside that ``faults`` reports as unreadable."""
    return [Move(*words, number) for number, words in lines(docs / MOVED) if _is_move(words)]


def _is_move(words: list[str]) -> bool:
    return len(words) == 2 and words[0].endswith(".html") and words[1].partition("#")[0].endswith(".html")


def published(docs: Path) -> dict[str, int]:
    """Every address that was ever published, with its line in the list."""
    return {words[0]: number for number, words in lines(docs / PUBLISHED)}


def faults(docs: Path, pages: set[str]) -> Iterator[str]:
    """What is wrong with the two lists, each with file and line and the way out.

    :param pages: the addresses of the pages that the site has now.
    """
    for number, words in lines(docs / MOVED):
        if not _is_move(words):
            yield f"docs/{MOVED}:{number}: write the old address, a space, and the new one, as: graphs/old.html graphs/new.html"
    listed = moves(docs)
    old = {move.old: move.line for move in reversed(listed)}
    for move in listed:
        at = f"docs/{MOVED}:{move.line}"
        if old[move.old] != move.line:
            yield f"{at}: {move.old} stands in line {old[move.old]} too; an address leads to one place, so remove a line"
        if move.old in pages:
            yield f"{at}: {move.old} is a page of this site; give that page another name, or remove the line"
        if move.page in old:
            yield f"{at}: {move.page} has moved as well, see line {old[move.page]}; lead straight to where that line leads"
        elif move.page not in pages:
            yield f"{at}: it leads to {move.page}, which is no page of this site; correct it"
    for address, number in published(docs).items():
        if address not in pages and address not in old:
            yield (
                f"docs/{PUBLISHED}:{number}: {address} was published, and there is no such page now; add a line "
                f"'{address} NEW-ADDRESS' to docs/{MOVED}, or remove this line if the page was never published"
            )


def page(move: Move, title: str, site: str) -> str:
    """The page at the old address.

    :param title: of the page that it leads to.
    :param site: the address of the site, with a slash at its end.
    """
    to = escape(os.path.relpath(move.page, Path(move.old).parent) + (f"#{move.anchor}" if move.anchor else ""))
    moved = escape("This page has moved.")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{moved}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="robots" content="noindex">\n'
        f'<link rel="canonical" href="{escape(site + move.page)}">\n<script data-to="{to}">{_SCRIPT}</script>\n'
        f'<noscript><meta http-equiv="refresh" content="0; url={to}"></noscript>\n</head>\n'
        f'<body>\n<main>\n<h1>{moved}</h1>\n<p><a href="{to}">{escape(title)}</a></p>\n</main>\n</body>\n</html>\n'
    )


def rule(move: Move, below: str) -> str:
    """The line of ``moved-pages.conf``: an address and where it leads, as nginx's ``map`` reads them.

    >>> rule(Move("a/old.html", "b/new.html#here", 1), "/some-fork/")
    '"/some-fork/a/old.html" "/some-fork/b/new.html#here";'
    """
    return f'"{below}{move.old}" "{below}{move.new}";'


def write(app: Sphinx, exception: Exception | None) -> None:
    """Check the lists, and write what leads on. Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    docs, out = Path(app.srcdir), Path(app.outdir)
    names = {app.builder.get_target_uri(name): name for name in app.env.found_docs}
    found = [*faults(docs, set(names)), *_missing_anchors(docs, out)]
    for fault in found:
        logger.error("%s", fault, type="atlas", subtype="moved")
    if found:
        app.statuscode = 1
        return
    listed = moves(docs)
    for move in listed:
        path = out / move.old
        text = page(move, app.env.titles[names[move.page]].astext(), app.config.html_baseurl)
        write_if_changed(path, text)
    below = urlsplit(app.config.html_baseurl).path
    write_whole(out / FOR_NGINX, "".join(f"{rule(move, below)}\n" for move in listed))
    write_whole(out / PUBLISHED, "".join(f"{address}\n" for address in sorted({*names, *published(docs)})))


def _missing_anchors(docs: Path, out: Path) -> Iterator[str]:
    for move in moves(docs):
        path = out / move.page
        if move.anchor and path.is_file() and f'id="{move.anchor}"' not in path.read_text(encoding="utf-8"):
            yield f"docs/{MOVED}:{move.line}: {move.page} has no anchor #{move.anchor}; correct it, or leave the anchor out"


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
