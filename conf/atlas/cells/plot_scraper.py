"""A sphinx-gallery scraper that draws a cell's matplotlib figures as SVG, with alternative texts that say what to see.

A drawing is a tenth of the size of sphinx-gallery's pair of bitmaps, sharp on every screen, and can follow the theme. Where
sphinx-gallery takes a figure's title, or else its file's name, as alternative text, a figure here must have a title for
everybody, and a ``# figure: TEXT`` comment for those who cannot see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from . import line_watcher
from .request_comments import CommentError, FigureRequest, requests_for


def scrape(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for the block's matplotlib figures, saved to the gallery's image paths.

    :raises CommentError: for a figure without a title or text, or a text without a figure; it names file and line.
    """
    path = block_vars["src_file"]
    wanted = requests_for(FigureRequest, block, path)
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
        images = [Path(next(block_vars["image_path_iterator"])).with_suffix(".svg") for _ in numbers]
        with line_watcher.paused():
            for number, image in zip(numbers, images, strict=True):
                plt.figure(number).savefig(image, metadata={"Date": None})
    finally:
        plt.close("all")
    return "".join(
        f"\n.. plot-figure:: /{image.relative_to(gallery_conf['src_dir']).as_posix()}\n   :alt: {request.alt}\n\n"
        for image, request in zip(images, wanted, strict=True)
    )


def _titles(figure: Figure) -> list[str]:
    titles = [
        figure.get_suptitle(),
        *(axes.get_title(loc) for axes in figure.axes for loc in ("left", "center", "right")),
    ]
    return [title for title in titles if title.strip()]
