"""The checks find what they are for: a page that does everything wrong is reported for each of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from serving import Server
from visiting import LARGEST_SHIFT, Visit, look

WRONG = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Wrong</title></head><body><main>
<div class="content" style="overflow-x: auto"><article>
<h1>Wrong</h1>
<section><p style="color: #bbb; background: #fff; font-size: 12px">Pale and small</p></section>
<p>A paragraph with a <a href="#late" style="color: #222; text-decoration: none">link that nobody sees</a> in the middle.</p>
<a href="#"></a>
<details><summary>More</summary><img src="gone.png"></details>
<img src="https://other.example/picture.png" alt="A picture from another site">
<div style="overflow-x: auto; width: 100px"><div style="width: 900px">A wide box</div></div>
<div style="width: 2000px">Wider than any window</div>
<div class="table-wrapper colwidths-given" style="overflow-x: auto" tabindex="0"><div style="width: 512px">Sentences</div></div>
<svg class="graph" role="img" aria-label="Two cards"><g class="g-card"><rect fill="#333"/><text fill="#666">pale</text></g>
<g class="g-card"><rect fill="none"/><text fill="#222">x1</text></g><text fill="#ddd">2 × pale</text></svg>
<p id="late">Text that moves</p>
<script>
  console.error("complaint");
  setTimeout(() => { throw new Error("thrown"); });
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.querySelector("h1").insertAdjacentHTML("afterend", "<div style='height: 300px'></div>");
  }));
</script>
</article></div><div style="width: 1500px">A wide footer</div></main></body></html>"""


COLOURS = ["color-contrast", "link-in-text-block"]


@pytest.fixture(scope="module")
def looks(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Visit]]:
    """The page as it is looked at in light, and in dark. No policy keeps it from what it does wrong."""
    folder: Path = tmp_path_factory.mktemp("wrong")
    (folder / "content-security-policy.conf").touch()
    (folder / "wrong.html").write_text(WRONG, encoding="utf-8")
    context = browser.new_context(viewport={"width": 390, "height": 900})
    with server(folder) as origin, context:
        yield {
            "whole": look(context, origin, "wrong.html"),
            "only colours": look(context, origin, "wrong.html", only_colours=True),
        }


@pytest.fixture
def visit(looks: dict[str, Visit]) -> Visit:
    return looks["whole"]


def test_another_site_is_found(visit: Visit) -> None:
    assert visit.other_sites == ["https://other.example/picture.png"]


@pytest.mark.parametrize("said", ["console: complaint", "script: thrown", "404 for"])
def test_an_error_is_found(visit: Visit, said: str) -> None:
    assert any(said in error for error in visit.errors)


@pytest.mark.parametrize("rule", [*COLOURS, "link-name", "image-alt"])
def test_an_accessibility_fault_is_found(visit: Visit, rule: str) -> None:
    assert any(fault.startswith(f"{rule}:") for fault in visit.accessibility)


def test_a_second_theme_is_looked_at_for_its_colours(looks: dict[str, Visit]) -> None:
    assert {fault.partition(":")[0] for fault in looks["only colours"].accessibility} == set(COLOURS)


def test_a_pale_graph_is_found(visit: Visit) -> None:
    assert [fault.partition(": null ")[2] for fault in visit.pale_graphs] == ["pale", "2 × pale"]


def test_a_page_that_is_too_wide_is_found(visit: Visit) -> None:
    assert any(fault.startswith("html is ") for fault in visit.too_wide)


def test_text_that_runs_out_of_its_column_is_found(visit: Visit) -> None:
    assert any(fault.startswith("div.content is ") for fault in visit.too_wide)
    assert any("Wider than any window" in fault for fault in visit.too_wide)


def test_a_table_of_text_that_must_be_scrolled_is_found(visit: Visit) -> None:
    assert any(fault.startswith("div.table-wrapper.colwidths-given is 512 px wide") for fault in visit.too_wide)


def test_small_text_is_found(visit: Visit) -> None:
    assert visit.small_text == ["12px: Pale and small"]


def test_a_box_without_a_keyboard_is_found(visit: Visit) -> None:
    assert any("overflow-x: auto" in box for box in visit.unreachable)


def test_text_that_moves_is_found(visit: Visit) -> None:
    assert sum(value for value, _ in visit.shifts) >= LARGEST_SHIFT
