"""A plot stands in the page as SVG: themed, named, and in nobody's way."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup, Tag

from atlas.directives.figures.plot_figure import inline
from sources import ROOT

STYLE = ROOT / "conf" / "atlas" / "gallery" / "atlas.mplstyle"
ALT = 'A line & two "marks": a < b'


def drawn(draw: Callable[[plt.Axes], object]) -> str:
    """The SVG that matplotlib writes for one pair of axes."""
    with plt.style.context(STYLE):
        figure, axes = plt.subplots()
        draw(axes)
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
        plt.close(figure)
    return written.getvalue()


def on_page(drawing: str, name: str = "sphx_glr_a_001") -> Tag:
    return BeautifulSoup(inline(drawing, name, ALT), "html.parser").svg


@pytest.fixture(scope="module")
def line() -> str:
    return drawn(lambda axes: axes.plot([1, 2], marker="o"))


def test_it_is_one_image_with_a_name(line: str) -> None:
    svg = on_page(line)
    assert (svg["role"], svg["aria-label"], svg["id"]) == ("img", ALT, "sphx_glr_a_001")
    assert not svg.find_all(["metadata", "style", "title"])


def test_every_colour_can_be_themed() -> None:
    svg = on_page(drawn(lambda axes: axes.bar([1, 2], [1, 2], hatch="//", edgecolor="#c2410c")))
    colours = [
        value
        for element in svg.find_all(True)
        for key, value in element.attrs.items()
        if key in ("style", "fill", "stroke") and "#" in value and "url(" not in value
    ]
    assert len(colours) > 20 and "var(--plot-c2410c, #c2410c)" in "".join(colours)
    assert not re.search(r"(?<!, )#[0-9a-f]{6}", " ".join(colours))


def test_two_drawings_share_no_id_and_all_references_hold(line: str) -> None:
    pages = [on_page(line, name) for name in ("one", "two")]
    ids = [{element["id"] for element in page.find_all(id=True)} for page in pages]
    assert not ids[0] & ids[1]
    for own, page in zip(ids, pages, strict=True):
        used = {use["href"].removeprefix("#") for use in page.select("use[href]")}
        used |= set(re.findall(r"url\(#([^)]+)\)", str(page)))
        assert used and used == own


def test_it_is_as_wide_as_drawn_and_keeps_its_proportions(line: str) -> None:
    svg = on_page(line)
    assert not svg.has_attr("height") and not svg.has_attr("width")
    _left, _top, width, _height = map(float, svg["viewbox"].split())
    assert svg["style"] == f"width: {width * 1.45:.0f}px"


def test_places_have_no_more_digits_than_can_be_seen(line: str) -> None:
    def places(drawing: str) -> list[str]:
        values = re.findall(r'\b(?:d|x|y|points)="([^"]*)"', drawing)
        return re.findall(r"-?\d+(?:\.\d+)?", " ".join(values))

    fine, coarse = places(line), places(inline(line, "sphx_glr_a_001", ALT))
    assert any(len(number.partition(".")[2]) > 2 for number in fine)
    assert max(len(number.partition(".")[2]) for number in coarse) == 2
    assert list(map(float, coarse)) == pytest.approx(list(map(float, fine)), abs=0.0051)


def test_a_bitmap_keeps_its_paper(line: str) -> None:
    bitmap = drawn(lambda axes: axes.imshow([[0, 1], [1, 0]]))
    assert "plot-on-paper" in on_page(bitmap)["class"] and "plot-on-paper" not in on_page(line)["class"]


def test_several_panels_keep_their_width_on_a_phone(line: str) -> None:
    with plt.style.context(STYLE):
        figure, _panels = plt.subplots(1, 2)
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
        plt.close(figure)
    assert "plot-panels" in on_page(written.getvalue())["class"] and "plot-panels" not in on_page(line)["class"]


def test_the_colours_of_the_style_are_known_to_both_themes() -> None:
    css = (ROOT / "conf" / "static" / "plot.css").read_text(encoding="utf-8")
    for colour in set(re.findall(r"\b[0-9a-f]{6}\b", STYLE.read_text(encoding="utf-8"))):
        assert css.count(f"--plot-{colour}:") == 2, f"plot.css names no dark counterpart of #{colour}, or only one"
