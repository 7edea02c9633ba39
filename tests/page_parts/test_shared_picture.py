"""What a shared link shows: a small PNG of the right size, drawn from the page's first figure, and only if that changed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from PIL import Image

from atlas.page_parts.sharing.picture_card import card, is_of, png
from atlas.page_parts.sharing.shared_picture import first_figure
from tiny.tiny_site import Build

LIMIT = 60 * 1024
MARK = '<svg viewBox="0 0 32 32"><circle cx="16" cy="16" r="16" fill="#059669"/></svg>'
GRAPH = (
    '<svg role="img" aria-label="a -> b" class="graph" viewBox="0 0 99 99">'
    '<g class="g-card g-leaf"><rect width="99" height="99"/></g></svg>'
)
PLOT = (
    '<svg viewBox="0 0 99 99" class="plot"><path style="fill: var(--plot-2563eb, #2563eb)" d="M0 0H99V99H0"/></svg>'
)
LEAF, BLUE = (236, 253, 245), (37, 99, 235)  # the colors of a leaf in graph.css, and of the path


def tags(page: BeautifulSoup) -> dict[str, str]:
    return {tag["property"]: tag["content"] for tag in page.select("meta[property^='og:image']")}


@pytest.mark.parametrize("name", ["index", "guide", "gallery/basics/plots", "gallery/basics/graph_of_a_product"])
def test_each_page_has_its_own(good: Build, page, name: str) -> None:
    said = tags(page(name))
    assert said["og:image"] == f"https://autograd-atlas.example/_shared/{name}.png"
    assert page(name).select_one('meta[name="twitter:card"]')["content"] == "summary_large_image"
    picture = good.out / "_shared" / f"{name}.png"
    with Image.open(picture) as image:
        assert (str(image.width), str(image.height)) == (said["og:image:width"], said["og:image:height"])
        assert image.size == (1200, 630)
    assert picture.stat().st_size <= LIMIT


def test_its_words_are_those_of_the_figure(page) -> None:
    figure = page("gallery/basics/graph_of_a_product").select_one("svg.graph")
    assert tags(page("gallery/basics/graph_of_a_product"))["og:image:alt"] == figure["aria-label"]


def test_two_builds_draw_the_same_bytes(twice: list[Build]) -> None:
    one, other = ({path.name: path.read_bytes() for path in (done.out / "_shared").rglob("*.png")} for done in twice)
    assert one and one == other


def colors(drawn: bytes) -> set[tuple[int, ...]]:
    """The colors of the picture, as a palette keeps them: each number may be a little off."""
    image = Image.open(io.BytesIO(drawn)).convert("RGB")
    return {color for count, color in image.getcolors(1200 * 630) if count > 500}


def has(found: set[tuple[int, ...]], wanted: tuple[int, ...]) -> bool:
    return any(all(abs(a - b) <= 8 for a, b in zip(color, wanted, strict=True)) for color in found)


@pytest.mark.parametrize(("figure", "color"), [(GRAPH, LEAF), (PLOT, BLUE)])
def test_figure_and_title_are_in_it_in_the_colors_of_a_light_page(figure: str, color: tuple[int, ...]) -> None:
    found = colors(png(card("A title", figure, "Atlas", MARK)))
    assert has(found, color) and has(found, (255, 255, 255))
    assert not has(colors(png(card("A title", "", "Atlas", MARK))), color)
    assert png(card("A title", figure, "Atlas", MARK)) != png(card("Another", figure, "Atlas", MARK))


def test_it_is_drawn_again_only_for_another_card(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    assert not is_of(path, "card")
    drawn = card("A title", GRAPH, "Atlas", MARK)
    path.write_bytes(png(drawn))
    assert is_of(path, drawn) and not is_of(path, card("Another", GRAPH, "Atlas", MARK))
    path.write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    assert not is_of(path, drawn)


def test_a_title_of_any_length_stays_within(tmp_path: Path) -> None:
    assert card("word " * 60, "", "Atlas", MARK).count("<text") == 3  # two lines, and the name of the site


def test_the_first_figure_of_a_page_is_found_whatever_its_label_says() -> None:
    document = new_document("page")
    document += nodes.raw("", '<svg viewBox="0 0 1 1" class="icon"></svg>', format="html")
    document += nodes.raw("", f"<div>{GRAPH}</div>", format="html")
    document += nodes.raw("", PLOT, format="html")
    assert first_figure(document) == GRAPH
    assert first_figure(new_document("none")) == ""


def test_the_real_pages_have_light_ones(site: Path, all_pages: list[str]) -> None:
    heavy = {path: path.stat().st_size for path in (site / "_shared").rglob("*.png") if path.stat().st_size > LIMIT}
    assert not heavy and len(list((site / "_shared").rglob("*.png"))) == len(all_pages) - 2  # 404 and the index
