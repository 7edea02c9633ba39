"""Which line of the page made which card of a graph figure: ``graph_code.js`` lights one when the other is pointed at.

A drawing knows the lines of its script. What a page shows of the script lacks what is hidden, so here its lines are numbered
again, as they stand in their blocks. Where a figure stands on another page, a line of it is lit that says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from atlas.gallery import sphinx_gallery_patches
from atlas.gallery.requests import without_requests
from atlas.toolbox import json_for_script

_ATTRIBUTE = "made_by"
_SOURCE = "GENERATED FROM PYTHON SOURCE LINES "
_MARK = "\0"
_PROMPT = ">>> "

Place = tuple[nodes.Element, int]
"""A line of a block of the page, counted from 1."""


def with_code(drawing: nodes.raw, data: dict[str, Any]) -> nodes.raw:
    """Note on a figure's drawing, by the key of each card, the line that made it and the numbers of its statement's lines.

    :param data: as ``graphs.figure_data`` returns it.
    """
    drawing[_ATTRIBUTE] = {
        key: (card["line"], *card["at"]) for key, card in data["cards"].items() if card.get("line") and card.get("at")
    }
    return drawing


def tie(app: Sphinx, doctree: nodes.document) -> None:
    """Write below each figure where on the page its lines are. Connected to ``doctree-read``, after ``hide_requests``."""
    drawings = [raw for raw in doctree.findall(nodes.raw) if raw.get(_ATTRIBUTE)]
    if not drawings:
        return
    script = Path(app.env.doc2path(app.env.docname)).with_suffix(".py")
    is_example = app.env.docname.startswith("gallery/") and script.exists()
    lines = _lines_of_script(doctree, script) if is_example else {}
    said = {} if is_example else _lines_said_once(doctree)
    names = _Names()
    for drawing in drawings:
        found = {}
        for key, (text, first, last) in drawing[_ATTRIBUTE].items():
            places = [lines.get(first), lines.get(last)] if is_example else [said.get(text)] * 2
            (begin, end) = places
            if begin and end and begin[0] is end[0]:
                found[key] = [names.of(begin[0]), begin[1], end[1]]
        if found:
            drawing.parent.insert(
                drawing.parent.index(drawing) + 1, nodes.raw("", json_for_script({_ATTRIBUTE: found}), format="html")
            )


class _Names:
    """Ids for the blocks that have such a line."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._given: dict[int, str] = {}

    def of(self, block: nodes.Element) -> str:
        if id(block) not in self._given:
            self._given[id(block)] = f"cell-{next(self._numbers)}"
            block["ids"].append(self._given[id(block)])
        return self._given[id(block)]


def _lines_of_script(doctree: nodes.document, script: Path) -> dict[int, Place]:
    """For each line of code of the script that the page shows, where it stands."""
    cells = sphinx_gallery_patches.read_code_cells(script)
    return {
        number: (block, place)
        for first, block in _cells(doctree)
        for place, number in enumerate(_numbers(cells.get(first, ""), first, block.astext()), 1)
        if number
    }


def _cells(doctree: nodes.document) -> Iterator[tuple[int, nodes.Element]]:
    """The blocks that show a cell of the script, each with the line at which the cell begins: a comment before it says that."""
    first = None
    for node in doctree.findall(lambda node: isinstance(node, (nodes.comment, nodes.literal_block))):
        if isinstance(node, nodes.comment):
            text = node.astext()
            first = int(text.removeprefix(_SOURCE).partition("-")[0]) if text.startswith(_SOURCE) else None
        elif first is not None:
            yield first, node
            first = None


def _numbers(code: str, first: int, shown: str) -> list[int]:
    """For each line of a cell as the page shows it, its number in the script; 0 for empty lines and comments.

    Nothing if the page shows something else than what is left of the cell.

    >>> _numbers("x = 1\\n# graph: x -- One\\n\\ny = 2", 10, "x = 1\\n\\ny = 2")
    [10, 0, 13]
    """
    marked = "\n".join(
        line if not line.strip() or line.lstrip().startswith("#") else f"{line}{_MARK}{number}"
        for number, line in enumerate(code.split("\n"), first)
    )
    visible = without_requests(sphinx_gallery_patches.without_hidden(marked))
    left = [line.partition(_MARK) for line in visible.strip("\n").split("\n")]
    if [line.strip() for line, _, _ in left] != [line.strip() for line in shown.strip("\n").split("\n")]:
        return []
    return [int(number or 0) for _, _, number in left]


def _lines_said_once(doctree: nodes.document) -> dict[str, Place]:
    """The lines of all blocks of code, without prompts, that stand on the page once."""
    found: dict[str, list[Place]] = {}
    for block in doctree.findall(lambda node: isinstance(node, (nodes.literal_block, nodes.doctest_block))):
        for place, line in enumerate(block.astext().split("\n"), 1):
            found.setdefault(line.removeprefix(_PROMPT).strip(), []).append((block, place))
    return {line: places[0] for line, places in found.items() if len(places) == 1}


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", tie, priority=600)
