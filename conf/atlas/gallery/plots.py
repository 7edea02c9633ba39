"""sphinx-gallery's matplotlib scraper, with alternative texts that say what to see.

sphinx-gallery takes a figure's title, or else its file's name, as alternative text. Here a figure must have a title for
everybody, and a ``# figure: TEXT`` comment for those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import matplotlib_scraper

from . import claims
from .comments import CommentError, FigureRequest, requests


def scrape(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for the block's matplotlib figures, saved to the gallery's image paths.

    :raises CommentError: for a figure without a title or text, or a text without a figure; it names file and line.
    """
    path = block_vars["src_file"]
    wanted = [found for found in requests(block.content, block.lineno, path) if isinstance(found, FigureRequest)]
    numbers = plt.get_fignums()
    try:
        for number, request in zip_longest(numbers, wanted):
            if number is None:
                raise CommentError(
                    f"{path}:{request.line}: '# figure:' describes a figure that this cell does not draw"
                )
            at = f"{path}:{request.line if request else block.lineno}"
            if request is None:
                raise CommentError(
                    f"{at}: a figure of this cell has no text; add a line '# figure: WHAT TO SEE IN IT'"
                )
            if not _titles(plt.figure(number)):
                raise CommentError(f"{at}: this figure has no title; give it one with set_title() or suptitle()")
    except CommentError:
        plt.close("all")
        raise
    with claims.paused():
        rst = matplotlib_scraper(block, block_vars, gallery_conf)
    head, *rest = rst.split(":alt: ")
    parts = [request.alt + "\n" + part.partition("\n")[2] for request, part in zip(wanted, rest, strict=True)]
    return ":alt: ".join([head, *parts])


def _titles(figure: Figure) -> list[str]:
    titles = [
        figure.get_suptitle(),
        *(axes.get_title(loc) for axes in figure.axes for loc in ("left", "center", "right")),
    ]
    return [title for title in titles if title.strip()]
