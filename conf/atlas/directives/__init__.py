"""Drawings that an author puts on a page: graphs that can be played and changed, plots, memory cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FIGURES = ("graph_code", "graph_figure", "graph_live", "memory_cells", "plot_figure")


def setup(app: Sphinx) -> None:
    set_up(app, f"{__name__}.figures", *_FIGURES)
