"""The directive ``memory-cells``: a tensor beside the memory that it reads, for a reader to transpose, slice, expand and view.

Without JavaScript it is a picture of the first tensor. ``conf/static/memory_cells.js`` adds the calls, and computes what they
do; a browser test compares that with PyTorch.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from atlas.toolbox import json_for_script

SIZE = (3, 4)


class MemoryCells(SphinxDirective):
    """``.. memory-cells::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", write_html(), format="html")]


def write_html() -> str:
    """The picture of a tensor of 3 rows and 4 columns, and of its 12 numbers in memory."""
    rows, columns = SIZE
    grid = "".join(
        f"<tr>{''.join(f'<td>{row * columns + column}</td>' for column in range(columns))}</tr>"
        for row in range(rows)
    )
    strip = "".join(f"<td>{place}</td>" for place in range(rows * columns))
    said = {
        "size": SIZE,
        "again": "start again",
        "shares": "x reads the marked cells of the first tensor's memory. Point to a number to see its cell.",
        "copied": "x has memory of its own: it is a copy. A write into it does not change the first tensor.",
    }
    return (
        f'<div class="memory-cells no-search"><p><code class="cells-code">x = torch.arange(12).reshape{SIZE}</code></p>'
        f'<div class="cells-calls" role="group" aria-label="{"Call one of these on x"}"></div>'
        f'<table class="cells-tensor" aria-label="x">{grid}</table>'
        f'<p class="cells-facts"><code>.shape {SIZE}</code> <code>.stride() {(columns, 1)}</code> '
        "<code>.storage_offset() 0</code> <code>.is_contiguous() True</code></p>"
        f'<table class="cells-memory" aria-label="{"memory"}"><tr>{strip}</tr></table>'
        f'<p class="cells-said" aria-live="polite">{said["shares"]}</p>{json_for_script(said)}</div>'
    )


def setup(app: Sphinx) -> None:
    app.add_directive("memory-cells", MemoryCells)
