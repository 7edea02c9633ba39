"""A graph stands in the page as SVG with a name, and as a table with a row for each card."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

from graphs.draw import draw_graph
from graphs.model import Card, Graph

Page = Callable[[str], BeautifulSoup]
TITLES = ["A product & its leaves: w < x", "With its AccumulateGrad nodes"]


@pytest.fixture
def figures(page: Page) -> list:
    """Where MyST-NB takes the notebook for the page, there is no figure."""
    return page("graph_of_a_product").select("figure.graph-figure")


def test_svg_is_an_image_with_the_title_as_its_name(figures: list) -> None:
    drawings = [figure.select_one("svg") for figure in figures]
    assert [(svg["role"], svg["aria-label"]) for svg in drawings] == [("img", title) for title in TITLES]


def test_title_is_the_caption(figures: list) -> None:
    assert [figure.select_one(".caption-text").get_text() for figure in figures] == TITLES


def test_svg_has_no_style_of_its_own(figures: list) -> None:
    """Its colours come from graph.css, which knows the light and the dark theme."""
    assert not [figure for figure in figures if figure.select("style")]


def test_table_is_folded_and_has_a_row_for_each_card(figures: list) -> None:
    for figure, cards in zip(figures, (3, 5), strict=True):
        assert len(figure.select("svg [data-card]")) == cards
        (fold,) = figure.select("details")
        assert not fold.has_attr("open") and fold.summary.get_text() == "The graph as a table"
        assert len(fold.select("tbody tr")) == cards


def test_table_says_what_the_drawing_shows(figures: list) -> None:
    rows = [[cell.get_text() for cell in row.select("td")] for row in figures[0].select("tbody tr")]
    assert rows[0] == ["w", "leaf", "2", "3", "y"]
    assert rows[2] == ["y", "root · MulBackward0", "6", "", ""]


def test_another_page_may_repeat_the_drawing_with_a_title_of_its_own(page: Page) -> None:
    (figure,) = page("guide").select("figure.graph-figure")
    assert figure.select_one("svg")["aria-label"] == "The product again, on another page"
    assert not figure.select("details")


def test_a_name_with_quotes() -> None:
    drawing = draw_graph(Graph((Card(0, "leaf", names=("x",)),), ()), label='Say "no" & <go>')
    assert BeautifulSoup(drawing, "html.parser").svg["aria-label"] == 'Say "no" & <go>'
