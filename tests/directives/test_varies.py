"""What a box holds may vary from build to build; the box itself may not come and go, nor take in what stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from sphinx_gallery.directives import imgsgnode
from sphinx_gallery.gen_rst import HTML_HEADER

from atlas.directives.varies import GatherVarying
from compare_builds import differences
from tiny.tiny_site import Build

BOX = '<div class="varies"><p>{}<br>s</p></div>'


def built(folder: Path, body: str) -> Path:
    folder.mkdir()
    (folder / "page.html").write_text(f"<h1>Title</h1>\n{body}\n<p>Text</p>")
    return folder


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (BOX.format(1), BOX.format(2), True),
        (BOX.format(1), "", False),
        (BOX.format(1), BOX.format(1) + BOX.format(2), False),
        (f"<p>a</p>{BOX.format(1)}", f"{BOX.format(1)}<p>a</p>", False),
        (BOX.format(1), BOX.format("<b>1</b>") + "<b>2</b>", False),
    ],
    ids=["another content", "no box", "a second box", "another place", "something after it"],
)
def test_a_box(tmp_path: Path, first: str, second: str, same: bool) -> None:
    assert (not differences(built(tmp_path / "first", first), built(tmp_path / "second", second))) is same


def gathered(*parts: nodes.Node) -> list[nodes.Node]:
    """What the box holds, when a note and then these parts, of which the first is above the note, are on a page."""
    document = new_document("page")
    document += [parts[0], nodes.container(classes=["varies-note"]), *parts[1:], nodes.paragraph("", "Text.")]
    GatherVarying(document).apply()
    (box,) = document.findall(lambda node: isinstance(node, nodes.container) and "varies" in node["classes"])
    assert document[-1].astext() == "Text."
    return box.children


def test_sphinx_gallerys_own_figures_and_outputs_are_in_the_box() -> None:
    """Its node for a figure, its class of an output, and its HTML of a table are known by their names."""
    figure = imgsgnode()
    output = nodes.literal_block("", "0.1 s", classes=["sphx-glr-script-out"])
    table = nodes.raw("", HTML_HEADER.format("<table></table>"), format="html")
    assert [node for node in gathered(figure, output, table) if node in (figure, output, table)] == [
        figure,
        output,
        table,
    ]


def test_that_is_what_sphinx_gallery_writes(good: Build, page: Callable[[str], BeautifulSoup]) -> None:
    """And the place of its list of tags: an id that an index has twice, so it is taken out."""
    written = (good.site / "docs/gallery/basics/varying_output.rst").read_text(encoding="utf-8")
    assert ".. rst-class:: sphx-glr-script-out" in written
    assert "output_subarea output_html" in written
    index = (good.site / "docs/gallery/index.rst").read_text(encoding="utf-8")
    assert "id='sg-tag-list'" in index and not page("gallery/index").select("#sg-tag-list, .sphx-glr-tag-list")
