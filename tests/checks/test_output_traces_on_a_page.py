"""Outputs and the code above them: alternative texts, notes, requests that are hidden, lines that are wrapped."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup

from tiny.tiny_site import Build

Page = Callable[[str], BeautifulSoup]
REQUEST = re.compile(r"# (graph|figure|varies):")
ASKING = ["graph_of_a_product", "plots", "varying_output"]


def test_plots_say_what_to_see(page: Page) -> None:
    """Left alone, the alternative text is the figure's title, or else its file's name."""
    assert [plot["aria-label"] for plot in page("plots").select("article svg.plot")] == [
        "A straight line that rises from 1 to 2",
        "The first of two falls",
        "The second of two is flat",
    ]


def test_a_varying_output_or_plot_has_a_note_above_it(page: Page) -> None:
    box, with_plot = page("varying_output").select(".varies")
    assert " ".join(box.get_text().split()).startswith("This output varies. the time depends on the machine 0.1 s")
    assert box.select_one("em").get_text() == "time"
    assert box.select_one(".sphx-glr-script-out").get_text().strip() == "0.1 s" and box.select(".output_html table")
    # whoever compares two builds leaves the box out, and would find a plot beside it to differ
    assert [plot["aria-label"] for plot in with_plot.select("svg.plot")] == ["A bar."]
    assert with_plot.select_one(".sphx-glr-script-out").get_text().strip() == "0.2 s"


@pytest.mark.parametrize("name", ASKING)
def test_requests_are_not_shown(page: Page, name: str) -> None:
    code = [block.get_text() for block in page(name).select(".highlight-Python pre")]
    assert code and not [block for block in code if REQUEST.search(block) or not block.strip()]


@pytest.mark.parametrize("name", ASKING)
def test_the_downloaded_script_keeps_them(good: Build, page: Page, name: str) -> None:
    (link,) = page(name).select('.sphx-glr-footer a[href$=".py"]')
    script = (good.out / "gallery" / "basics" / link["href"]).resolve()
    assert script.read_bytes() == (good.site / "examples" / "basics" / f"{name}.py").read_bytes()
    assert REQUEST.search(script.read_text(encoding="utf-8"))


def test_long_prose_is_wrapped_and_columns_are_not(page: Page) -> None:
    outputs = page("varying_output").select("div.sphx-glr-script-out")
    assert ["wrap" in output["class"] for output in outputs] == [False, True, False, False]
    assert "factor" in page("varying_output").select_one(".output_html table").get_text()
