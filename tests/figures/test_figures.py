"""Graphs and plots on a page: a named SVG, the same as a table, the controls, and the lines of code that made the cards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup, Tag
from docutils import nodes
from docutils.utils import new_document

from atlas.figures import draw_plot_picture, inline_plot, tie_lines
from drawgrad.player import write_sentence
from sources import ROOT
from tiny.tiny_site import Build

Page = Callable[[str], BeautifulSoup]
TITLES = ["A product & its leaves: w < x", "With its AccumulateGrad nodes"]


@pytest.fixture
def figures(page: Page) -> list[Tag]:
    """Where MyST-NB takes the notebook for the page, there is no figure."""
    return page("graph_of_a_product").select("figure.graph-figure")


def test_a_graph_is_an_image_with_the_title_as_its_name(figures: list[Tag]) -> None:
    drawings = [figure.select_one("svg") for figure in figures]
    assert [(svg["role"], svg["aria-label"]) for svg in drawings] == [("img", title) for title in TITLES]
    assert [figure.select_one(".caption-text").get_text() for figure in figures] == TITLES


def test_the_table_is_folded_and_says_what_the_drawing_shows(figures: list[Tag]) -> None:
    for figure, cards in zip(figures, (3, 5), strict=True):
        assert len(figure.select("svg [data-card]")) == cards
        (fold,) = figure.select("details")
        assert not fold.has_attr("open") and fold.summary.get_text() == "The graph as a table"
        rows = [[cell.get_text() for cell in row.select("td")] for row in fold.select("tbody tr")]
        assert len(rows) == cards and rows[0][:4] == ["w", "leaf", "2", "3"]


def test_another_page_may_repeat_the_drawing_with_a_title_of_its_own(page: Page) -> None:
    (figure,) = page("guide").select("figure.graph-figure")
    assert figure.select_one("svg")["aria-label"] == "The product again, on another page"
    assert not figure.select("details") and figure.select_one(".graph-bar input")["max"] == "6"
    assert not figure.find("script", recursive=False), "its code is not on this page"


def test_all_pages_share_one_picture_for_links(page: Page, good: Build) -> None:
    for name in ("index", "graph_of_a_product"):
        said = {tag["property"]: tag["content"] for tag in page(name).select("meta[property^='og:image']")}
        assert said["og:image"] == "https://autograd-atlas.example/_static/shared.png" and said["og:image:alt"]
        assert page(name).select_one('meta[name="twitter:card"]')["content"] == "summary_large_image"
    assert (good.out / "_static" / "shared.png").stat().st_size < 60 * 1024


# -- The player -----------------------------------------------------------------------------------


def test_each_step_has_a_sentence_and_each_card_a_note(figures: list[Tag]) -> None:
    said = json.loads(figures[0].script.string)
    assert [step["text"] for step in said["steps"][:4]] == [
        "Before the first operation: w = 2, x = 3.",
        "Forward: y = 6, recorded as MulBackward0.",
        "Backward starts at y, with the gradient 1.",
        "Backward: MulBackward0 (y) sends a gradient to w, x.",
    ]
    assert said["steps"][-1]["kind"] == "whole" and len(said["steps"]) == 7
    notes = {note[0][1]: dict(note[1:]) for note in said["cards"].values()}
    assert notes["w"] == {"made by": "w = torch.tensor(2.0, requires_grad=True)", "value": "2", "gradient": "3"}
    assert notes["y"]["made by"] == "y = w * x" and notes["y"]["sends to w"] == "grad * x"


def test_a_figure_can_be_linked_and_its_controls_have_names(figures: list[Tag]) -> None:
    (div,) = figures[0].find_all("div", id=True, recursive=False)
    assert div["id"] == "graph-graph-of-a-product-1"
    assert figures[0].select_one(".graph-link")["href"] == "#graph-graph-of-a-product-1"
    assert all(control.get("aria-label") for control in figures[0].select(".graph-bar :is(button, input, a)"))


@pytest.mark.parametrize(
    ("to", "sums", "text"),
    [
        ([], [], "F (y) has nothing to send on."),
        ([["a", "2"], ["b", "3"]], [["b", 2, "1 + 3"]], "F (y) sends 2 to a, 3 to b. At b they add up: 1 + 3."),
        ([["a", None]] * 2, [["a", 2, None]], "F (y) sends a gradient to a. At a, 2 have arrived and are added."),
        ([[name, None] for name in "abcdefgh"], [], "F (y) sends a gradient to a, b, c, d, e, f, …."),
    ],
)
def test_sentences(to: list[Any], sums: list[Any], text: str) -> None:
    assert write_sentence({"kind": "send", "who": "F (y)", "to": to, "sums": sums}) == f"Backward: {text}"


# -- The lines that made the cards ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "lit"),
    [
        (["x = 1\ny = x"], ["cell-1", 2, 2]),
        ([">>> x = 1\n>>> y = x\n>>> z = y"], ["cell-1", 2, 2]),
        (["y = x", "print(y)\ny = x"], None),
        (["z = y = x"], None),
    ],
)
def test_on_another_page_a_line_counts_if_it_is_said_once(code: list[str], lit: list[str | int] | None) -> None:
    document = new_document("index")
    document += [nodes.literal_block(text, text) for text in code]
    document += nodes.figure("", nodes.raw("", "<svg/>", made_by={"4": ["y = x", 30, 30]}))
    env = SimpleNamespace(docname="index", doc2path=lambda name: f"/nowhere/{name}.md")
    tie_lines(SimpleNamespace(env=env), document)
    written = [raw.astext() for raw in document.findall(nodes.raw) if "made_by" in raw.astext()]
    found = [json.loads(BeautifulSoup(html, "html.parser").script.string)["made_by"] for html in written]
    assert found == ([{"4": lit}] if lit else [])


# -- Plots ----------------------------------------------------------------------------------------

STYLE = ROOT / "conf" / "atlas" / "gallery" / "atlas.mplstyle"
ALT = 'A line & two "marks": a < b'


def draw_plot(draw: Callable[[plt.Axes], object], panels: int = 1) -> str:
    """The SVG that matplotlib writes."""
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(1, panels, squeeze=False)
        draw(axes[0, 0])
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
        plt.close(figure)
    return written.getvalue()


def put_on_page(drawing: str, name: str = "sphx_glr_a_001") -> Tag:
    return BeautifulSoup(inline_plot(drawing, name, ALT), "html.parser").svg


@pytest.fixture(scope="module")
def line() -> str:
    return draw_plot(lambda axes: axes.plot([1, 2], marker="o"))


def test_a_plot_is_one_image_as_wide_as_drawn(line: str) -> None:
    svg = put_on_page(line)
    assert (svg["role"], svg["aria-label"], svg["id"]) == ("img", ALT, "sphx_glr_a_001")
    assert not svg.find_all(["metadata", "style", "title"])
    width = float(svg["viewbox"].split()[2])
    assert svg["style"] == f"width: {width * 1.5:.0f}px" and not svg.has_attr("height")


def test_every_color_can_be_themed() -> None:
    svg = str(put_on_page(draw_plot(lambda axes: axes.bar([1, 2], [1, 2], hatch="//", edgecolor="#c2410c"))))
    assert "var(--plot-c2410c, #c2410c)" in svg and not re.search(r"(?<!, )#[0-9a-f]{6}\b", svg)
    css = (ROOT / "conf" / "static" / "plot.css").read_text(encoding="utf-8")
    for color in set(re.findall(r"\b[0-9a-f]{6}\b", STYLE.read_text(encoding="utf-8"))):
        assert f"--plot-{color}: light-dark(#{color}," in css, f"plot.css names no dark counterpart of #{color}"


def test_two_drawings_share_no_id_and_all_references_hold(line: str) -> None:
    pages = [put_on_page(line, name) for name in ("one", "two")]
    ids = [{element["id"] for element in page.find_all(id=True)} for page in pages]
    assert not ids[0] & ids[1]
    for own, page in zip(ids, pages, strict=True):
        used = {use["href"].removeprefix("#") for use in page.select("use[href]")}
        used |= set(re.findall(r"url\(#([^)]+)\)", str(page)))
        assert used and used == own


def test_a_bitmap_keeps_its_paper(line: str) -> None:
    bitmap = draw_plot(lambda axes: axes.imshow([[0, 1], [1, 0]]))
    assert "plot-on-paper" in put_on_page(bitmap)["class"]
    assert re.search(r'<image href="data:image/png;base64,\S*"', draw_plot_picture(bitmap))
    assert put_on_page(line)["class"] == ["plot"]


def test_the_picture_of_a_plot_has_its_line_in_whole_numbers_and_no_word(line: str) -> None:
    found = draw_plot_picture(line)
    assert "DejaVu" in line and "DejaVu" not in found and " id=" not in found
    outlines = re.findall(r'<path d="([^"]*)"', found)
    assert len(outlines) >= 2 and not [one for one in outlines if "." in one], "the line, its marks, and a frame"
    assert "var(--plot-" in found and len(found) < len(line) / 5
